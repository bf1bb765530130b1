# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images, made of files of this machine and of programs built here."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from pathlib import Path, PurePosixPath

from . import golang
from .archive import Image, Layer, write_archive
from .tools import SOURCE, digest, run, unless_made

IMAGES = SOURCE / "images"
# Of MindCluster: one of each version line.
RELEASES = ("v7.3.2", "v26.1.0")
_DRIVER = "/usr/local/Ascend/driver/lib64"
# Its optional components, by the names of their programs: the user of each, and the variables that its image has.
_OPTIONAL = {
    "clusterd": {"User": "9000:9000"},
    "noded": {"User": "0:0", "LD_LIBRARY_PATH": f"{_DRIVER}:{_DRIVER}/driver:{_DRIVER}/common"},
    "ascend-operator": {"User": "9000:9000"},
}
# Of Volcano, with what each has beside it.
_VOLCANO = {"vc-scheduler": ("plugins/volcano-npu_{release}.so",), "vc-controller-manager": ()}
# More than bash and busybox need: what programs in test pods may be linked with.
_LIBRARIES = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")


def make_images(go: str, directory: Path) -> None:
    """Make pause, test, and MindCluster's programs of each release in `directory`, except those that are up to date."""
    directory.mkdir(parents=True, exist_ok=True)
    programs = directory.parent / "bin"
    base = base_layer(programs)
    builders = {"pause": pause(programs), "test": test(base)}
    if (golang.MODULE / "cmd" / "device-plugin" / "main.go").exists():
        golang.build(go, "device-plugin", programs / "device-plugin")
        builders.update({f"device-plugin-{release}": device_plugin(programs, base, release) for release in RELEASES})
    if (golang.MODULE / "cmd" / "npu-exporter" / "main.go").exists():
        golang.build(go, "npu-exporter", programs / "npu-exporter")
        builders.update({f"exporter-{release}": exporter(programs, base, release) for release in RELEASES})
    for program, more in _OPTIONAL.items():
        golang.build(go, program, programs / program)
        builders.update({f"{program}-{release}": optional(programs, base, program, more, release) for release in RELEASES})
    for program, plugins in _VOLCANO.items():
        golang.build(go, program, programs / program)
        builders.update({f"{program}-{release}": volcano(programs, base, program, plugins, release) for release in RELEASES})
    for name, image in builders.items():
        key = digest(image.key(), SOURCE / "simbuild" / "archive.py")
        unless_made(directory / f"{name}.tar", key, functools.partial(write_archive, image=image))


def pause(programs: Path) -> Image:
    """The sandbox: waits, and reaps what is left to it."""
    binary = programs / "pause"
    programs.mkdir(parents=True, exist_ok=True)
    run("gcc", "-static", "-Os", "-s", "-Wall", "-Werror", "-Wl,--build-id=none", IMAGES / "pause.c", "-o", binary)
    layer = Layer()
    layer.add_file("pause", binary, 0o755)
    return Image("localhost/pause:lab", [layer], {"Entrypoint": ["/pause"], "User": "65535:65535"})


def test(base: Layer) -> Image:
    """An ordinary glibc image for pods of tests."""
    return Image("localhost/test:lab", [base], {"Cmd": ["/bin/sh"], "Env": [_PATH]})


def device_plugin(programs: Path, base: Layer, release: str) -> Image:
    """As upstream's: bash, LD_LIBRARY_PATH for the driver, /usr/local/bin/device-plugin."""
    layer = Layer()
    layer.add_directory("usr/local/bin", 0o550)
    layer.add_file("usr/local/bin/device-plugin", programs / "device-plugin", 0o550)
    return Image(
        f"localhost/ascend-k8sdeviceplugin:{release}",
        [base, layer],
        {
            "Cmd": ["/bin/bash"],
            "Env": [_PATH, f"LD_LIBRARY_PATH={_DRIVER}:{_DRIVER}/driver:{_DRIVER}/common", f"NPUSIM_RELEASE={release}"],
        },
    )


def exporter(programs: Path, base: Layer, release: str) -> Image:
    """As upstream's: bash, LD_LIBRARY_PATH for the driver, /usr/local/bin/npu-exporter."""
    layer = Layer()
    layer.add_directory("usr/local/bin", 0o550)
    layer.add_file("usr/local/bin/npu-exporter", programs / "npu-exporter", 0o500)
    top = "/usr/local/Ascend"
    path = f"{top}/driver/lib64/driver:{top}/driver/lib64/common:{top}/add-ons:{top}/driver/lib64:/usr/local/dcmi"
    return Image(
        f"localhost/npu-exporter:{release}",
        [base, layer],
        {"Cmd": ["/usr/local/bin/npu-exporter"], "Env": [_PATH, f"LD_LIBRARY_PATH={path}", f"NPUSIM_RELEASE={release}"]},
    )


def optional(programs: Path, base: Layer, program: str, more: dict[str, str], release: str) -> Image:
    """As upstream's: bash, and the program in /usr/local/bin. `more`: its user and its variables, by their names."""
    layer = Layer()
    layer.add_directory("usr/local/bin", 0o755)
    layer.add_file(f"usr/local/bin/{program}", programs / program, 0o555)
    return Image(
        f"localhost/{program}:{release}",
        [base, layer],
        {
            "Cmd": ["/bin/bash"],
            "User": more["User"],
            "Env": [_PATH, f"NPUSIM_RELEASE={release}", *(f"{key}={value}" for key, value in more.items() if key != "User")],
        },
    )


def volcano(programs: Path, base: Layer, program: str, plugins: tuple[str, ...], release: str) -> Image:
    """As upstream's: a shell, the program in /, and MindCluster's plugin, which is empty here. All of it is the user's 9000."""
    layer = Layer()
    layer.add_file(program, programs / program, 0o555)
    empty = programs / "empty"
    empty.write_bytes(b"")
    for plugin in plugins:
        layer.add_directory("plugins")
        layer.add_file(plugin.format(release=release), empty, 0o444)
    environment = [_PATH, f"NPUSIM_RELEASE={release}"]
    return Image(f"localhost/{program}:{release}", [base, layer], {"Cmd": ["/bin/sh"], "User": "9000:9000", "Env": environment})


def make_upstream_image(build: Path, reference: str, programs: Path, target: Path) -> None:
    """An image of upstream's, on our base: the files that its Dockerfile in the directory `build` copies, and its variables."""
    layer, environment = Layer(), [_PATH]
    made = set(_DIRECTORIES.split())
    for word, first, rest in re.findall(
        r"^(COPY|ENV) +([^ =]+)[ =]+(.+)$", (build / "Dockerfile").read_text(encoding="utf-8"), re.M
    ):
        if word == "ENV":
            environment.append(f"{first}={rest}")
            continue
        source, path = build / first, PurePosixPath(rest.strip("/"))
        if rest.endswith("/"):
            path /= source.name
        for parent in reversed(path.parents[:-1]):
            if str(parent) not in made:
                layer.add_directory(str(parent))
                made.add(str(parent))
        layer.add_file(str(path), source, 0o440 if source.suffix else 0o550)
    write_archive(target, Image(reference, [base_layer(programs), layer], {"Cmd": ["/bin/bash"], "Env": environment}))


_DIRECTORIES = """dev etc etc/ld.so.conf.d home home/HwHiAiUser proc root run sys usr usr/bin usr/lib usr/lib64
    usr/local usr/local/bin usr/local/sbin usr/sbin var var/lib var/log"""
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base_layer(programs: Path) -> Layer:
    """A small glibc system with bash, busybox and ldconfig, from this machine's own files."""
    layer = Layer()
    for name in _DIRECTORIES.split():
        layer.add_directory(name)
    layer.add_directory("tmp", 0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        layer.add_link(name, f"usr/{name}")
    layer.add_link("var/run", "../run")
    bash, busybox = Path("/bin/bash"), _busybox(programs)
    layer.add_file("usr/bin/bash", bash, 0o755)
    layer.add_file("usr/bin/busybox", busybox, 0o755)
    layer.add_file("usr/sbin/ldconfig", _first("/sbin/ldconfig.real", "/sbin/ldconfig"), 0o755)
    for applet in run(busybox, "--list").split():
        if applet not in ("bash", "busybox", "ldconfig"):
            layer.add_link(f"usr/bin/{applet}", "busybox")
    directories = set()
    for library in _libraries(bash, busybox):
        inside = "usr/lib64" if library.name.startswith("ld-") else f"usr/lib/{library.parent.name}"
        if inside not in directories and inside != "usr/lib64":
            layer.add_directory(inside)
            layer.add_text("etc/ld.so.conf.d/lib.conf", f"/{inside}\n")
        directories.add(inside)
        layer.add_file(f"{inside}/{library.name}", library, 0o755)
    for file in sorted((IMAGES / "etc").iterdir()):
        layer.add_file(f"etc/{file.name}", file, 0o644)
    return layer


def _busybox(programs: Path) -> Path:
    """This machine's dynamically linked busybox, else the one of its distribution's package."""
    if Path("/bin/busybox").exists() and "NEEDED" in run("objdump", "-p", "/bin/busybox"):
        return Path("/bin/busybox")
    kept = programs / "busybox"
    if not kept.exists():
        programs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as work:
            os.chmod(work, 0o777)  # noqa: S103  apt downloads as its own user
            run("apt-get", "download", "busybox", cwd=Path(work))
            run("dpkg-deb", "-x", next(Path(work).glob("*.deb")), work)
            (Path(work) / "bin" / "busybox").rename(kept)
    return kept


def _libraries(*programs: Path) -> list[Path]:
    """The libraries programs need, and some more of the same directory."""
    found = {Path(path) for program in programs for path in re.findall(r"(/\S+) \(0x", run("ldd", program))}
    libc = next(path for path in found if path.name == "libc.so.6")
    return sorted(found | {libc.parent / name for name in _LIBRARIES if (libc.parent / name).exists()})


def _first(*paths: str) -> Path:
    return next(Path(path) for path in paths if Path(path).exists())
