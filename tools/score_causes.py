"""How often the causes that are read from a group's log alone are right: over many simulated histories, by cause.

    python tools/score_causes.py --seeds 2000

The truth is what the coordinator noted. A cause that is "inferred" should be right in 95 of 100 cases, one
that is "seen" always.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from partita.explain import Sure
from partita.sim.fault_plan import CLASSIC, PROTOCOLS
from support.explain.scoring import Score, claims, history


def main() -> int:
    """Print the score; 1 if it is below the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=2.0, help="simulated minutes per history")
    parser.add_argument("--protocol", choices=PROTOCOLS, default=CLASSIC, help="what the members speak")
    parser.add_argument("--wrong", action="store_true", help="print each wrong claim")
    options = parser.parse_args()
    score = Score()
    for seed in range(options.first, options.first + options.seeds):
        for claim in claims(history(seed, options.minutes, options.protocol)):
            score.add(claim)
            if options.wrong and not claim.is_right and claim.cause.sure in (Sure.SEEN, Sure.INFERRED):
                cause = claim.cause
                print(
                    claim.seed,
                    claim.generation,
                    cause.sure.value,
                    cause.what.value,
                    cause.who,
                    claim.truth,
                    cause.evidence,
                )
    print("\n".join(score.lines()))
    return 0 if score.share(Sure.SEEN) == 1 and score.share(Sure.INFERRED) >= 0.95 else 1


if __name__ == "__main__":
    raise SystemExit(main())
