# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files CRI-O reads, and what they say, on its real layout below a directory."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._crio import crio_config

from support.host.crio import DROP_IN

DEFAULT = (["/etc/cdi", "/var/run/cdi"], None)


class Etc:
    def __init__(self, path):
        self.fs = str(path)

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.fs + path), exist_ok=True)
        with open(self.fs + path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def sets(self, path, *directories):
        self.write(path, "[crio.runtime]\ncdi_spec_dirs = [%s]\n" % ", ".join('"%s"' % directory for directory in directories))

    def dirs(self, *arguments, **environment):
        return crio_config.spec_dirs(["/usr/bin/crio", *arguments], environment, self.fs)


@pytest.fixture
def etc(tmp_path):
    found = Etc(tmp_path)
    found.write("/etc/crio/crio.conf.d/10-crio.conf", DROP_IN)
    return found


def test_the_default(etc):
    assert etc.dirs() == DEFAULT
    os.remove(etc.fs + "/etc/crio/crio.conf.d/10-crio.conf")
    assert etc.dirs() == DEFAULT
    os.rmdir(etc.fs + "/etc/crio/crio.conf.d")
    assert etc.dirs() == DEFAULT


def test_the_last_file_wins_as_a_whole(etc):
    etc.sets("/etc/crio/crio.conf", "/main")
    assert etc.dirs() == (["/main"], "/etc/crio/crio.conf")
    etc.sets("/etc/crio/crio.conf.d/05-site.conf", "/five", "/etc/cdi")
    assert etc.dirs() == (["/five", "/etc/cdi"], "/etc/crio/crio.conf.d/05-site.conf")
    etc.sets("/etc/crio/crio.conf.d/20-site.conf")
    assert etc.dirs() == ([], "/etc/crio/crio.conf.d/20-site.conf")


def test_every_file_counts_in_the_order_of_names(etc):
    """Whatever its name: also an editor's copy. Go walks a directory in the place of its name, and sorts bytes."""
    names = [".hidden", "10-crio.conf", "20.d/a.conf", "20.d/b/c", "20.e", "Z.conf", "a.conf", "a.conf.rpmsave", "ä.conf"]
    for name in names:
        etc.sets("/etc/crio/crio.conf.d/" + name, "/" + name)
    found = crio_config.files(crio_config.DEFAULT_PATH, crio_config.DEFAULT_DROP_INS, etc.fs)
    assert found == ["/etc/crio/crio.conf.d/" + name for name in names]
    assert etc.dirs().directories == ["/ä.conf"]


def test_links(etc):
    etc.sets("/opt/site.conf", "/linked")
    os.symlink("../../../opt/site.conf", etc.fs + "/etc/crio/crio.conf.d/20-site.conf")
    assert etc.dirs() == (["/linked"], "/etc/crio/crio.conf.d/20-site.conf")
    os.symlink("/nowhere", etc.fs + "/etc/crio/crio.conf.d/30-broken.conf")
    assert etc.dirs().directories == ["/linked"]


@pytest.mark.parametrize(
    "arguments, environment",
    [
        (["--config", "/opt/c.conf", "--config-dir=/opt/d"], {}),
        (["-c=/opt/c.conf", "-d", "/opt/d"], {"CONTAINER_CONFIG": "/opt/other", "CONTAINER_CONFIG_DIR": "/opt/other"}),
        ([], {"CONTAINER_CONFIG": "/opt/c.conf", "CONTAINER_CONFIG_DIR": "/opt/d"}),
    ],
)
def test_other_places(etc, arguments, environment):
    etc.sets("/etc/crio/crio.conf.d/99.conf", "/etc")
    etc.sets("/opt/c.conf", "/opt")
    assert etc.dirs(*arguments, **environment) == (["/opt"], "/opt/c.conf")
    assert crio_config.main_file(["crio", *arguments], environment) == "/opt/c.conf"
    etc.sets("/opt/d/x", "/dropped-in")
    assert etc.dirs(*arguments, **environment) == (["/dropped-in"], "/opt/d/x")


def test_no_main_file(etc):
    etc.sets("/etc/crio/crio.conf", "/main")
    assert etc.dirs("--config=") == DEFAULT


def test_command_line_and_environment_replace_the_files(etc):
    etc.sets("/etc/crio/crio.conf", "/main")
    found = etc.dirs(CONTAINER_CDI_SPEC_DIRS="/a, /b")
    assert found.directories == ["/a", "/b"] and "CONTAINER_CDI_SPEC_DIRS" in found.source
    found = etc.dirs("--cdi-spec-dirs", "/c", "--cdi-spec-dirs=/d", CONTAINER_CDI_SPEC_DIRS="/a")
    assert found.directories == ["/c", "/d"] and "--cdi-spec-dirs" in found.source


@pytest.mark.parametrize(
    "text, directories",
    [
        ("crio.runtime.cdi_spec_dirs = ['/a']\n", ["/a"]),
        ("crio = { runtime = { cdi_spec_dirs = ['/a'] } }\n", ["/a"]),
        ("[CRIO.Runtime]\nCDI_Spec_Dirs = [\n  '/a', # one\n]\n", ["/a"]),
        ("[crio]\ncdi_spec_dirs = ['/a']\n[runtime]\ncdi_spec_dirs = ['/a']\n", None),
        ("", None),
    ],
)
def test_ways_to_write_it(text, directories):
    assert crio_config.in_text(text, "x") == directories


@pytest.mark.parametrize(
    "text, told",
    [("[crio.runtime\n", "line 1"), ("[crio.runtime]\ncdi_spec_dirs = '/etc/cdi'\n", "is not a list"), ("x = \n", "line 1")],
)
def test_what_cri_o_does_not_accept_is_named(etc, text, told):
    etc.write("/etc/crio/crio.conf.d/30.conf", text)
    with pytest.raises(ValueError, match=told) as caught:
        etc.dirs()
    assert "/etc/crio/crio.conf.d/30.conf" in str(caught.value)


def test_what_is_no_configuration(etc):
    os.mkfifo(etc.fs + "/etc/crio/crio.conf.d/30.conf")
    with pytest.raises(ValueError, match="30.conf is not a regular file"):
        etc.dirs()


def test_a_thousand_files_are_the_limit(etc, monkeypatch):
    monkeypatch.setattr(crio_config, "_MAX_FILES", 3)
    for name in "abcd":
        etc.sets("/etc/crio/crio.conf.d/" + name, "/x")
    with pytest.raises(ValueError, match="/etc/crio/crio.conf.d has more than 3 files"):
        etc.dirs()
