"""The commands of a page of docs/RUNBOOK.md, as they are printed there, with the exit code beside each."""

import shlex

from places import ROOT


def page(title):
    """(words after `waybill`, exit code) of the page's console blocks, in order."""
    text = (ROOT / "docs" / "RUNBOOK.md").read_text()
    (section,) = [part for part in text.split("\n## ")[1:] if part.splitlines()[0] == title]
    commands = []
    for block in section.split("```console\n")[1:]:
        for line in block.split("```")[0].splitlines():
            command, code = line.split("# exit ")
            words = shlex.split(command)
            assert words[0] == "waybill", line
            commands.append((words[1:], int(code.split()[0])))
    return commands
