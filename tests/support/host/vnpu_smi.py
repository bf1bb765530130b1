# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program npu-smi that knows vNPUs: it keeps them in a file, and logs its calls. Its tables are those of 310P chips."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

PROGRAM = """#!{python}
import json, os, sys
path = {state!r}
state = json.load(open(path))
words = sys.argv[1:]
state["calls"].append(" ".join(words))
kind, options = words[2], dict(zip(words[3::2], words[4::2]))
CORES = {{"vir01": (1, 1), "vir02": (2, 2), "vir02_1c": (2, 1), "vir04": (4, 4), "vir04_3c": (4, 3)}}
BAR = "+" + "-" * 79 + "+"

def save():
    with open(path + ".new", "w") as stream:
        json.dump(state, stream)
    os.rename(path + ".new", path)

def end(text, status=0):
    save()
    print(text)
    sys.exit(status)

chip = int(options["-i"]) - 40 + int(options["-c"]) if "-i" in options else None
mine = [v for v in state["vnpus"] if v["chip"] == chip]
left = [8 - sum(CORES[v["template"]][0] for v in mine), 7 - sum(CORES[v["template"]][1] for v in mine)]
if words[0] == "info":
    if kind == "phyid-remap":
        phy = int(options["-p"])
        end("\\tChip Physical ID               :%d\\n\\tNPU ID                        :%d\\n\\tChip ID                       :%d"
            % ((phy, 40, phy) if state.get("duo") else (phy, phy + 40, 0)))
    if kind == "vnpu-mode":
        end("\\tvnpu-mode                      : " + state["mode"])
    if kind == "template-info":
        rows = ["|%-10s %d 3 %d 0 0 0 |\\n|   0 0 0 |\\n%s" % ((name,) + parts + (BAR,)) for name, parts in CORES.items()]
        end("\\n".join([BAR, "|NPU instance template info is:|", "|=====|"] + rows))
    if state["mode"] != "docker":
        end("The vnpu is not in docker mode, does not support querying info-vnpu.")
    rows = ["|  %d  |  0  |  000000000000  |  %d  |  %s  |\\n%s" % (v["id"], v["id"] in state["used"], v["template"], BAR) for v in mine]
    end("\\n".join([BAR, "| AICORE Memory AICPU VPC VENC VDEC JPEGD JPEGE PNGD |", "|====|",
        "| %d/8 24/24 %d/7 12/12 3/3 12/12 16/16 8/8 NA/NA |" % tuple(left), BAR,
        "| Total number of vnpu: %-2d  |" % len(mine), BAR, "|  Vnpu ID  | Vgroup ID | Container ID | Status | Template Name |"] + rows))
number = int(options["-v"])
node = os.path.join(state["dev"], "vdavinci%d" % number)
if kind == "destroy-vnpu":
    if number in state["used"]:
        end("destroy vnpu %d failed." % number, 211)
    state["vnpus"] = [v for v in state["vnpus"] if v["id"] != number]
    os.unlink(node)
    end("\\tStatus                         : OK\\n\\tMessage                        : Destroy vnpu %d success" % number)
cores, aicpu = CORES[options["-f"]]
if cores > left[0] or aicpu > left[1]:
    end("Insufficient number of cores available, unallocated cores number:%f." % left[0], 217)
broken = state["broken"] == number
if not broken or state["leftover"]:
    state["vnpus"].append({{"chip": chip, "id": number, "template": options["-f"]}})
    open(node, "w").close()
if broken:
    end("create vnpu failed.", 211)
if state["dies"] == number:
    state["dies"] = None
    save()
    os.kill(os.getppid(), 9)
    os._exit(0)  # the test goes on, and must not be overwritten
end("\\tStatus                         : OK\\n\\tMessage                        : Create vnpu success")
"""


def two_310p(root: Path) -> Path:
    """A host with two 310P, whose / is ``root``."""
    for number in range(2):
        function = root / "sys/bus/pci/devices" / ("0000:0%d:00.0" % number)
        function.mkdir(parents=True)
        for name, value in (("vendor", "0x19e5"), ("class", "0x120000"), ("device", "0xd500"), ("subsystem_device", "0x0100")):
            (function / name).write_text(value + "\n", encoding="ascii")
    for path in ("dev", "proc", "run/npuops", "tree"):
        (root / path).mkdir(parents=True)
    for number in range(2):
        (root / "dev" / ("davinci%d" % number)).touch()
    return root


class VnpuSmi:
    """npu-smi in the driver tree ``tree``, for chips with nodes in ``dev``."""

    def __init__(self, tree: Path, dev: Path) -> None:
        program = tree / "tools" / "npu-smi"
        program.parent.mkdir(parents=True, exist_ok=True)
        self.path = tree / "vnpus.json"
        self.change(
            calls=[], vnpus=[], used=[], mode="docker", broken=None, leftover=False, dies=None, dev=str(dev)
        )  # fmt: skip
        program.write_text(PROGRAM.format(python=sys.executable, state=str(self.path)), encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    @property
    def state(self) -> dict[str, Any]:
        return json.loads(self.path.read_text(encoding="utf-8"))

    def change(self, **values: Any) -> None:
        """Set what it knows: calls, vnpus, used (IDs), mode, broken (an ID), leftover, dies (an ID), duo (both chips are on one card)."""
        state = self.state if self.path.exists() else {}
        self.path.write_text(json.dumps({**state, **values}), encoding="utf-8")

    def has(self, *vnpus: tuple[int, int, str]) -> None:
        """There are these vNPUs (chip, ID, template), with their nodes."""
        state = self.state
        for entry in state["vnpus"]:
            os.unlink(os.path.join(state["dev"], "vdavinci%d" % entry["id"]))
        for _chip, number, _template in vnpus:
            Path(state["dev"], "vdavinci%d" % number).touch()
        self.change(vnpus=[{"chip": chip, "id": number, "template": template} for chip, number, template in vnpus])

    @property
    def vnpus(self) -> list[tuple[int, int, str]]:
        return sorted((entry["chip"], entry["id"], entry["template"]) for entry in self.state["vnpus"])

    @property
    def changes(self) -> list[str]:
        """The calls that were to change something."""
        return [call for call in self.state["calls"] if call.startswith("set")]
