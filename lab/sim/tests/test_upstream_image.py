# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image of upstream's Dockerfile has the files that it copies, where it copies them, and its variables."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from simbuild import images
from simbuild.archive import Layer

DOCKERFILE = """\
FROM ubuntu:22.04
RUN useradd somebody
ENV LD_LIBRARY_PATH /usr/local/lib:/opt/lib
ENV OTHER=value
COPY ./program  /usr/local/bin/
COPY ./settings.json  /user/some-where/settings.json
RUN chmod 550 /usr/local/bin/program
"""


class UpstreamImage(unittest.TestCase):
    def test_files_and_variables(self) -> None:
        directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in (("Dockerfile", DOCKERFILE), ("program", "x"), ("settings.json", "{}")):
            (directory / name).write_text(text, encoding="utf-8")
        with mock.patch.object(images, "base_layer", lambda programs: Layer()):
            images.make_upstream_image(directory, "localhost/some:v1", directory, directory / "image.tar")
        with tarfile.open(directory / "image.tar") as archive:

            def blob(entry: dict) -> bytes:
                file = archive.extractfile("blobs/" + entry["digest"].replace(":", "/"))
                assert file
                return file.read()

            index = archive.extractfile("index.json")
            assert index
            manifest = json.loads(blob(json.load(index)["manifests"][0]))
            config = json.loads(blob(manifest["config"]))["config"]
            with tarfile.open(fileobj=io.BytesIO(blob(manifest["layers"][-1]))) as layer:
                found = {member.name: member.mode for member in layer.getmembers()}
        wanted = {"usr/local/bin/program": 0o550, "user": 0o755, "user/some-where": 0o755, "user/some-where/settings.json": 0o440}
        self.assertEqual(wanted, found)
        self.assertEqual(["LD_LIBRARY_PATH=/usr/local/lib:/opt/lib", "OTHER=value"], config["Env"][1:])


if __name__ == "__main__":
    unittest.main()
