"""Pictures and pages that need no script: SVG as text, and the style sheet of every report."""
