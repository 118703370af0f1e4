"""What options of several commands share: the variable of the control endpoint's token, and numbers within bounds."""

import math
from typing import Any

import click

TOKEN_VARIABLE = "PARTITA_ADMIN_TOKEN"
"""The variable with the control endpoint's token."""
token_option = click.option(
    "--admin-token", envvar=TOKEN_VARIABLE, show_envvar=True, help="The token that the broker printed at its start."
)


class NumberRange(click.FloatRange):
    """A number within bounds. NaN is in no range, though it is neither below nor above one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises BadParameter for anything else."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number
