# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with two registries that know nothing of each other, and with bundles between them."""

from __future__ import annotations

import errno
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror import bundle as bundles
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror import copying
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.bundle import Bundle

from support.host import registry_server, stored_images
from support.host.mirrored import access, run

AGENT, DRIVER, COMMON = b"the agent's own layer", b"a driver" * 1000, b"a layer of several images"
AGENT_NAME = re.compile(r"[^\"]+/npuops/agent:1")


@pytest.fixture
def outside():
    with registry_server.Registry(auth="basic") as server:
        yield server


@pytest.fixture
def inside():
    with registry_server.Registry(auth="token", username="pusher", password="another one") as server:
        yield server


@pytest.fixture
def images(outside):
    """name -> digest."""
    agent = stored_images.put_index(outside, "npuops/agent", "1", {"amd64": [COMMON, AGENT], "arm64": [b"arm64", AGENT]})
    driver = stored_images.put_image(outside, "mlops/driver", "25.5.0-910b", COMMON, DRIVER)
    return {outside.address + "/npuops/agent:1": agent, outside.address + "/mlops/driver:25.5.0-910b": driver}


@pytest.fixture
def bundle(tmp_path):
    return str(tmp_path / "bundle")


@pytest.fixture
def save(outside, images, bundle):
    """Make the bundle."""

    def act(**options):
        return run(**{"images": list(images), "to": bundle, "registries": access(outside), **options})

    return act


@pytest.fixture
def load(inside, bundle):
    """Load it into the other registry."""

    def act(**options):
        return run(**{"from": bundle, "to": inside.address + "/site", "registries": access(inside), **options})

    return act


def writes(registry):
    return [(method, path) for method, path, _header in registry.requests if method in ("PUT", "POST", "PATCH")]


def is_there(registry, repository, tag, digest):
    """Whether the name stands for that image in the registry, and everything that belongs to it exists."""
    content, _type = registry.manifests[(repository, tag)]
    assert registry_server.sha256(content) == digest
    source = [stored for (name, key), (stored, _kind) in registry.manifests.items() if name == repository]
    assert content in source
    import json

    document = json.loads(content)
    for entry in document.get("manifests", []):
        is_there(registry, repository, entry["digest"], entry["digest"])
    for entry in [*document.get("layers", []), *([document["config"]] if "config" in document else [])]:
        assert entry["digest"] in registry.blobs
    return True


def test_through_a_bundle_to_the_other_side(save, load, outside, inside, images, bundle):
    made = save()
    assert made["changed"] and made["msg"].startswith("2 of 2 images are new")
    again = save()
    assert not again["changed"] and again["checksum"] == made["checksum"], again["msg"]
    outside.requests.clear()
    planned = load(check_mode=True)
    assert planned["changed"] and not writes(inside)
    loaded = load(checksum="sha256:" + made["checksum"])
    assert [one["state"] for one in loaded["images"]] == ["missing", "missing"]
    for name, digest in images.items():
        repository, dummy, tag = name.partition("/")[2].partition(":")
        assert is_there(inside, "site/" + repository, tag, digest)
    # The registry of the other side was asked nothing, and nothing is copied a second time.
    assert not outside.requests
    inside.requests.clear()
    assert not load()["changed"] and not writes(inside)


def test_what_a_bundle_is(save, bundle):
    """Other tools read it: an OCI image layout, and what sha256sum reads."""
    made = save()
    assert (pathlib.Path(bundle) / "oci-layout").read_text() == '{"imageLayoutVersion":"1.0.0"}'
    checked = subprocess.run(
        ["sha256sum", "--strict", "--check", "SHA256SUMS"], cwd=bundle, capture_output=True, text=True, check=True
    )
    files = [os.path.relpath(os.path.join(top, name), bundle) for top, dummy, names in os.walk(bundle) for name in names]
    assert len(checked.stdout.splitlines()) == len(files) - 1, files
    own = subprocess.run(["sha256sum", "SHA256SUMS"], cwd=bundle, capture_output=True, text=True, check=True)
    assert own.stdout.split()[0] == made["checksum"]


def test_from_registry_to_registry(outside, inside, images):
    wanted = {"images": list(images), "to": {outside.address: inside.address + "/a/b"}, "registries": access(outside, inside)}
    planned = run(check_mode=True, **wanted)
    shared = len(COMMON) + len(DRIVER) + 2 * len(AGENT)
    assert planned["changed"] and planned["missing"] > shared and not writes(inside)
    done = run(**wanted)
    assert {one["name"]: one["digest"] for one in done["images"]} == {
        name.replace(outside.address, inside.address + "/a/b"): digest for name, digest in images.items()
    }
    for name, digest in images.items():
        repository, dummy, tag = name.partition("/")[2].partition(":")
        assert is_there(inside, "a/b/" + repository, tag, digest)
    # The tag of an image comes after everything else of it.
    assert [path for _method, path in writes(inside) if "agent/manifests" in path][-1] == "/v2/a/b/npuops/agent/manifests/1"
    assert not run(**wanted)["changed"]


def test_no_registry_sees_the_credentials_of_another(save, load, outside, inside):
    save()
    load(registries=[], credentials_of="x.example/y", registry_mirror=inside.address + "/site", to=None,
         registry_username="pusher", registry_password="another one", registry_plain_http=True)  # fmt: skip
    sent = {
        registry.address: {header for _m, _p, header in registry.requests if header and header.startswith("Basic")}
        for registry in (outside, inside)
    }
    assert all(len(headers) == 1 for headers in sent.values()) and not sent[outside.address] & sent[inside.address]


def test_signatures_come_along(save, load, outside, inside, images):
    signed = {}
    for name, digest in images.items():
        repository = name.partition("/")[2].partition(":")[0]
        signed[repository, digest] = stored_images.put_signature(outside, repository, digest, "by us")
    assert sum(one["signature"] for one in save()["images"]) == 2
    loaded = load()
    for (repository, digest), signature in signed.items():
        assert is_there(inside, "site/" + repository, digest.replace(":", "-") + ".sig", signature)
        # A client that requires signatures never sees the image without them.
        order = [one["digest"] for one in loaded["images"]]
        assert order.index(signature) < order.index(digest)
    # The site also signs the first one: its signature is not lost. The second one gets its new signature from outside.
    (first, first_digest), (second, second_digest) = list(signed)
    theirs = stored_images.put_signature(inside, "site/" + first, first_digest, "by the site")
    stored_images.put_signature(outside, first, first_digest, "by us", "again")
    more = stored_images.put_signature(outside, second, second_digest, "by us", "again")
    save()
    assert sorted(one["state"] for one in load()["images"]) == ["different", "kept", "present", "present"]
    assert is_there(inside, "site/" + first, first_digest.replace(":", "-") + ".sig", theirs)
    assert is_there(inside, "site/" + second, second_digest.replace(":", "-") + ".sig", more)


def test_a_tag_that_moved(save, load, outside, inside, images, bundle):
    save()
    load()
    new = stored_images.put_image(outside, "mlops/driver", "25.5.0-910b", COMMON, b"a newer driver")
    save()
    # The blobs that nothing names any more are gone.
    assert not (pathlib.Path(bundle) / "blobs/sha256" / registry_server.sha256(DRIVER).partition(":")[2]).exists()
    assert sorted(one["state"] for one in load()["images"]) == ["different", "present"]
    assert is_there(inside, "site/mlops/driver", "25.5.0-910b", new)


def test_images_are_added_to_a_bundle(save, load, outside, inside, images):
    first, second = images
    save(images=[first])
    save(images=[second])
    load()
    assert len({repository for repository, _tag in inside.manifests}) == 2


def two_more(outside):
    """Names of two images, the layers of which the registry does not send."""
    stored_images.put_image(outside, "more/one", "1", COMMON, b"the layer of one")
    stored_images.put_image(outside, "more/two", "1", COMMON, b"the layer of two")
    return [outside.address + "/more/one:1", outside.address + "/more/two:1"]


def without(outside, layer, fault):
    outside.faults = [("GET", "/blobs/" + registry_server.sha256(layer), fault)]


@pytest.mark.parametrize(
    ("layer", "added"), [(b"the layer of one", 0), (b"the layer of two", 1)], ids=["in the first image", "in the second image"]
)
@pytest.mark.parametrize("fault", [503, lambda body: body[:-1] + b"?"], ids=["out of order", "damaged"])
def test_a_failure_while_images_are_added_leaves_a_complete_bundle(save, load, outside, inside, layer, added, fault):
    save()
    more = two_more(outside)
    without(outside, layer, fault)
    with pytest.raises(NpuError, match=r"\. Checksum of the bundle: [0-9a-f]{64}$") as caught:
        save(images=more)
    assert load(checksum=caught.value.details["checksum"])["changed"]
    assert caught.value.message.endswith(caught.value.details["checksum"])
    there = {name for name, _tag in inside.manifests if name.startswith("site/more")}
    # One that is damaged stops no other.
    assert len(there) == (1 if callable(fault) else added)
    outside.faults = []
    save(images=more)
    assert load()["changed"] and ("site/more/two", "1") in inside.manifests


def killed(*_arguments):
    raise SystemExit


def test_a_killed_run_that_has_added_no_image_leaves_a_complete_bundle(save, load, outside, monkeypatch):
    made = save()
    more = two_more(outside)
    with monkeypatch.context() as patch:
        patch.setattr(Bundle, "add", killed)
        patch.setattr(Bundle, "close", lambda self: os.close(self._lock))
        with pytest.raises(SystemExit):
            save(images=more)
    assert load(checksum=made["checksum"])["changed"]


@pytest.mark.parametrize("fault", [503, lambda body: body[:-1] + b"?"], ids=["out of order", "damaged"])
def test_a_failure_before_a_bundle_is_complete_says_so(save, load, outside, bundle, fault):
    more = two_more(outside)
    without(outside, COMMON, fault)
    with pytest.raises(
        NpuError, match=f"\\. Until a run succeeds, the bundle {bundle} is not complete and cannot be used$"
    ) as caught:
        save(images=more)
    assert caught.value.details["checksum"] is None
    with pytest.raises(NpuError, match="is not a complete bundle"):
        load()


@pytest.mark.parametrize("registry", ["outside", "inside"])
def test_interrupted_at_each_request(request, registry, save, load, outside, inside, images, bundle):
    """Whatever request fails, the next run ends where an uninterrupted one would, and copies nothing twice."""
    broken = request.getfixturevalue(registry)
    name = "mlops/driver:25.5.0-910b"
    repository, tag = name.split(":")
    place = repository if registry == "outside" else "site/" + repository
    step = save if registry == "outside" else load
    if registry == "inside":
        save()
    at = 0
    while True:
        at += 1
        shutil.rmtree(bundle, ignore_errors=True) if registry == "outside" else (inside.manifests.clear(), inside.blobs.clear())
        broken.requests.clear()
        count = iter(range(1, 10**6))
        broken.interrupt = lambda: next(count) == at  # noqa: B023
        try:
            step()
            interrupted = False
        except NpuError as exc:
            interrupted = True
            assert broken.address in exc.message
            # The name is there with all of the image, or not at all.
            if registry == "inside" and (place, tag) in inside.manifests:
                assert is_there(inside, place, tag, images[f"{outside.address}/{name}"])
        broken.interrupt = lambda: False
        if not interrupted:
            break
        uploaded = {path for method, path in writes(broken) if method == "PUT" and "manifests" not in path}
        stored = set(inside.blobs)
        broken.requests.clear()
        assert step()["changed"]
        again = [path for method, path in writes(broken) if method == "PUT" and "digest=" in path]
        assert not [path for path in again if any(digest.replace(":", "%3A") in path for digest in stored)], (at, uploaded)
        assert not step()["changed"]
        if registry == "outside":
            load(check_mode=True)
        else:
            assert is_there(inside, place, tag, images[f"{outside.address}/{name}"])
    assert at > 8


def every_file(bundle):
    return sorted(os.path.relpath(os.path.join(top, name), bundle) for top, dummy, names in os.walk(bundle) for name in names)


def damage(kind, path):
    content = path.read_bytes()
    if kind == "changed":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif kind == "cut off":
        path.write_bytes(content[:-1])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "missing":
        path.unlink()
    elif kind == "a link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
    elif kind == "a pipe":
        path.unlink()
        os.mkfifo(path)


@pytest.mark.parametrize("kind", ["changed", "cut off", "empty", "missing", "a link", "a pipe"])
def test_each_damaged_file_is_found(save, load, inside, bundle, kind, tmp_path):
    save()
    whole = tmp_path / "whole"
    shutil.copytree(bundle, whole)
    files = every_file(bundle)
    for file in files:
        shutil.rmtree(bundle)
        shutil.copytree(whole, bundle)
        damage(kind, pathlib.Path(bundle) / file)
        with pytest.raises(NpuError) as failure:
            load()
        assert file in failure.value.message, (file, failure.value.message)
        assert not writes(inside)
    assert len(files) > 8


def test_a_damaged_bundle_is_repaired_where_it_was_made(save, load, bundle):
    made = save()
    blobs = pathlib.Path(bundle) / "blobs/sha256"
    for path in blobs.iterdir():
        path.write_bytes(b"rot")
    (blobs / ".partial-of-a-killed-run").write_bytes(b"x")
    assert save()["checksum"] == made["checksum"]
    assert not list(blobs.glob(".partial*"))
    assert load()["changed"]


@pytest.mark.parametrize("read", [bundles._hash, lambda path: Bundle(os.path.dirname(path))._read("mem", 10)])
def test_a_part_that_the_medium_does_not_give(read):
    """Nothing can be read at the beginning of a process's memory."""
    with pytest.raises(NpuError, match="^/proc/self/mem cannot be read: Input/output error. The medium may be damaged"):
        read("/proc/self/mem")


def test_a_check_of_a_damaged_bundle(save, bundle):
    """It tells that a run would repair it, and no checksum, which that run may change."""
    save()
    for path in pathlib.Path(bundle, "blobs/sha256").iterdir():
        path.write_bytes(b"rot")
    planned = save(check_mode=True)
    assert planned["changed"] and planned["checksum"] is None
    assert save()["checksum"]


def test_a_bundle_that_lacks_only_its_checksums(save, bundle):
    made = save()
    pathlib.Path(bundle, "SHA256SUMS").unlink()
    planned, done = save(check_mode=True), save()
    assert planned["changed"] and done["changed"] and done["checksum"] == made["checksum"]
    assert "only SHA256SUMS is to be written" in planned["msg"] + done["msg"]


def test_what_a_killed_run_left(save, bundle):
    """It may die in each write of a file, also in that of the first one."""
    blobs = pathlib.Path(bundle, "blobs/sha256")
    blobs.mkdir(parents=True)
    left = [pathlib.Path(bundle, ".oci-layout.ab_12"), blobs / (".%s.ab_12" % ("a" * 64)), blobs / ".partial-ab_12"]
    for path in left:
        path.write_bytes(b"")
    assert save()["changed"]
    assert not any(path.exists() for path in left)


@pytest.mark.parametrize("place", ["blobs", "blobs/sha256"])
def test_a_bundle_whose_directories_are_elsewhere(save, load, bundle, tmp_path, place):
    """The medium of another site must not make this one remove files."""
    save()
    path, elsewhere = pathlib.Path(bundle, place), tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    theirs = (elsewhere if place == "blobs/sha256" else elsewhere / "sha256") / ("a" * 64)
    theirs.write_bytes(b"of another program")
    for act in (save, load):
        with pytest.raises(NpuError, match="%s is a link" % path):
            act()
    assert theirs.exists()


def test_an_image_layout_of_another_program(save, load, bundle):
    """Its images have names such as latest, and what it keeps beside them is not removed."""
    save()
    path = pathlib.Path(bundle, "index.json")
    path.write_text(path.read_text().replace(AGENT_NAME.search(path.read_text()).group(0), "latest"))
    with pytest.raises(NpuError, match="names latest, .* npuops.ascend.mirror has not written it"):
        save()


def test_another_run_that_takes_blobs_away(save, bundle):
    """A bundle is never called complete that is not: here a blob goes after the plan was made."""
    first = Bundle.begin

    def begin(self, size):
        first(self, size)
        layer.unlink()

    save()
    layer = pathlib.Path(bundle, "blobs/sha256", registry_server.sha256(DRIVER).partition(":")[2])
    path = pathlib.Path(bundle, "SHA256SUMS")
    path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bundle, "begin", begin)
        with pytest.raises(NpuError, match="another run has changed the bundle. Run again"):
            save()
    assert not path.exists()
    assert save()["checksum"]


def test_without_space_for_a_layer(outside, inside, images, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(RegistryClient, "download", mock_full_disk)
    with pytest.raises(NpuError, match=r"cannot be kept in %s: No space left on device.*TMPDIR" % tmp_path):
        run(images=list(images), to=inside.address + "/x", registries=access(outside, inside))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(NpuError, match=r"cannot be kept in %s/missing: No such file" % tmp_path):
        run(images=list(images), to=inside.address + "/x", registries=access(outside, inside))


def mock_full_disk(*_arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_manifests_without_end(outside, bundle):
    """A registry may send 200 manifests of 4 MiB for each image."""
    entries = []
    for number in range(20):
        big = {"schemaVersion": 2, "layers": [], "config": {"digest": "sha256:" + "a" * 64, "size": 1}, "x": str(number) * 2**20}
        entries.append({"digest": outside.put_manifest("x", "big", big), "platform": {}})
    outside.put_manifest("x", "1", {"schemaVersion": 2, "manifests": entries}, manifests.OCI_INDEX)
    with pytest.raises(NpuError, match="x:1 has manifests of more than 16 MiB"):
        run(images=[outside.address + "/x:1"], to=bundle, registries=access(outside))


def test_more_manifests_than_memory(save, load, inside, monkeypatch):
    """A medium may have any number of images, each with manifests that are not too large."""
    save()
    monkeypatch.setattr(copying, "_MAX_MANIFESTS", 2000)
    with pytest.raises(NpuError, match="manifests of more than .* together"):
        load()
    assert not writes(inside)


def test_signatures_that_are_an_index(save, load, outside, inside, images):
    """The layers of an index have not been checked."""
    name, digest = next(iter(images.items()))
    repository = name.partition("/")[2].partition(":")[0]
    stored_images.put_signature(outside, repository, digest, "by us")
    save()
    load()
    tag = digest.replace(":", "-") + ".sig"
    inside.put_manifest("site/" + repository, tag, {"manifests": [], "layers": [5]}, manifests.OCI_INDEX)
    assert "different" in [one["state"] for one in load()["images"]]


def test_a_bundle_whose_path_has_an_at_sign(save, tmp_path):
    assert save(to=str(tmp_path / "usb@site"))["changed"]


def test_a_name_with_a_digest_and_without(outside, inside, images):
    """Each run would move the tag there and back."""
    name, old = outside.address + "/mlops/driver:25.5.0-910b", images[outside.address + "/mlops/driver:25.5.0-910b"]
    stored_images.put_image(outside, "mlops/driver", "25.5.0-910b", b"a newer driver")
    with pytest.raises(NpuError, match="different images, and both would be .*25.5.0-910b. Give"):
        run(images=[name, name + "@" + old], to=inside.address + "/x", registries=access(outside, inside))


def test_a_bundle_that_somebody_changed_with_its_checksums(save, load, outside, inside, bundle):
    made = save()
    stored_images.put_image(outside, "mlops/driver", "25.5.0-910b", b"evil")
    save()
    with pytest.raises(NpuError, match="it is another bundle"):
        load(checksum=made["checksum"])
    assert not writes(inside)


@pytest.mark.parametrize("part", ["index.json", "blobs"])
def test_a_bundle_that_changes_after_its_check(save, load, outside, inside, images, bundle, tmp_path, monkeypatch, part):
    """A share, or a stick with a computer in it: what was verified is not what is read then."""
    made = save()
    other = str(tmp_path / "other")
    stored_images.put_image(outside, "mlops/driver", "25.5.0-910b", b"evil")
    run(images=list(images), to=other, registries=access(outside))
    verify = Bundle.verify

    def change(self, checksum):
        found = verify(self, checksum)
        if part == "index.json":
            shutil.copytree(other, bundle, dirs_exist_ok=True)
        else:
            layer = pathlib.Path(bundle, "blobs/sha256", registry_server.sha256(DRIVER)[len("sha256:") :])
            layer.write_bytes(DRIVER[::-1])
        return found

    monkeypatch.setattr(Bundle, "verify", change)
    with pytest.raises(NpuError, match="changed after it was verified|changed while it was sent"):
        load(checksum=made["checksum"])
    assert ("site/mlops/driver", "25.5.0-910b") not in inside.manifests
    assert not {registry_server.sha256(DRIVER[::-1]), registry_server.sha256(b"evil")} & set(inside.blobs)


@pytest.mark.parametrize(
    "line",
    [
        "%s  ../../etc/passwd" % ("a" * 64),
        "%s  /etc/passwd" % ("a" * 64),
        "%s  blobs/sha256/../../index.json" % ("a" * 64),
        "%s *index.json" % ("a" * 64),
        "x" * 3000,
    ],
)
def test_names_that_lead_out_of_a_bundle(save, load, bundle, line):
    save()
    with open(os.path.join(bundle, "SHA256SUMS"), "a") as file:
        file.write(line + "\n")
    with pytest.raises(NpuError, match="is not a checksum of a file of a bundle"):
        load()


def test_a_blob_of_another_size_than_promised(outside, bundle):
    """A registry that sends more than it promises fills no disk."""
    stored_images.put_image(outside, "x", "1", b"layer")
    outside.faults.append(("GET", "/blobs/", lambda body: body + b"more" if body == b"layer" else body))
    with pytest.raises(NpuError, match="does not match the digest"):
        run(images=[outside.address + "/x:1"], to=bundle, registries=access(outside))
    assert not list(pathlib.Path(bundle).glob("blobs/sha256/.partial*"))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"images": [], "to": "/b"}, "nothing to copy"),
        ({"images": ["r.example/x:1"]}, "npu_mirror_to is not set"),
        ({"images": ["r.example/x:1"], "to": "https://r.example"}, "no https://, no tag"),
        ({"images": ["r.example/x:1"], "to": ["a"]}, "npu_mirror_to is .*; it must be a prefix"),
        ({"images": ["r.example/x:1"], "registry_mirror": ["a"]}, "npu_registry_mirror is .*; it must be a prefix"),
        ({"images": ["r.example/x:1"], "registry_mirror": "https://r.example"}, "npu_registry_mirror names .* no https://, no tag"),
        ({"images": ["r.example/x:1"], "registry_mirror": "/media/usb"}, "npu_registry_mirror names '/media/usb'"),
        ({"images": ["r.example/X:1"], "to": "r.example/y"}, "npu_mirror_images: .* not a valid image reference"),
        (
            {"images": ["r.example/x:1"], "to": "r.example/y", "credentials_of": "r.example/X"},
            "npu_driver_image or npu_driver_repository: .* not a valid image reference",
        ),
        ({"from": "/b", "images": ["r.example/x:1"], "to": "r.example/y"}, "leave out npu_mirror_images"),
        ({"from": "/nowhere", "to": "r.example/y"}, "/nowhere .* is not a complete bundle"),
        ({"images": ["r.example/x"], "to": "/b", "registries": [{"registry": "https://r.example"}]}, "npu_mirror_registries names"),
        (
            {"images": ["r.example/x"], "to": "/b", "registries": [{"registry": "r.example", "username": "u"}]},
            "only one of username",
        ),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(NpuError, match=message):
        run(**options)


def test_places_that_do_not_fit(save, load, outside, inside, images, bundle, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat").write_text("x")
    with pytest.raises(NpuError, match="neither empty nor a bundle"):
        save(to=str(tmp_path / "photos"))
    with pytest.raises(NpuError, match="gives no other name"):
        save(to=outside.address)
    with pytest.raises(NpuError, match="npu_registry_mirror gives no other name"):
        save(to=None, registry_mirror=outside.address)
    stored_images.put_image(inside, "npuops/agent", "1", b"another image of that name")
    both = [outside.address + "/npuops/agent:1", inside.address + "/npuops/agent:1"]
    with pytest.raises(NpuError, match="different images, and both would be r.example/x/npuops/agent:1"):
        run(images=both, to="r.example/x", registries=access(outside, inside))
    save()
    with pytest.raises(NpuError, match="both name a directory"):
        load(to=str(tmp_path / "elsewhere"))


# --- what is missing at the source ---


def without_member(registry, repository, tag, which, attestation=False):
    """Remove the member of the index that has the platform ``which``, or turn it into an attestation that is missing. Returns the
    digest of the index."""
    content, _type = registry.manifests[(repository, tag)]
    document = manifests.parse(content)
    entry = next(one for one in document["manifests"] if one["platform"]["architecture"] == which)
    del registry.manifests[(repository, entry["digest"])]
    if attestation:
        entry["platform"] = {"os": "unknown", "architecture": "unknown"}
        entry["annotations"] = {"vnd.docker.reference.type": "attestation-manifest"}
    return registry.put_manifest(repository, tag, document, manifests.OCI_INDEX)


def test_an_attestation_that_is_missing_stops_nothing(save, load, outside, inside, images):
    digest = without_member(outside, "npuops/agent", "1", "arm64", attestation=True)
    assert save()["changed"] and not save()["changed"]
    assert load()["changed"]
    assert registry_server.sha256(inside.manifests[("site/npuops/agent", "1")][0]) == digest
    assert ("site/mlops/driver", "25.5.0-910b") in inside.manifests


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_platform_that_is_missing_is_named_when_the_rest_has_been_copied(outside, inside, images, check_mode):
    without_member(outside, "npuops/agent", "1", "arm64")
    wanted = {"images": list(images), "to": inside.address + "/site", "registries": access(outside, inside)}
    with pytest.raises(
        NpuError, match=r"/npuops/agent:1 has an image for linux/arm64 that is missing .*Push .*/npuops/agent:1 again"
    ) as caught:
        run(check_mode=check_mode, **wanted)
    assert caught.value.details["changed"]
    there = {name for name, _tag in inside.manifests}
    assert there == (set() if check_mode else {"site/mlops/driver"})


def test_a_tag_that_does_not_exist_stops_no_other_image(save, outside, images):
    with pytest.raises(NpuError, match="/mlops/driver:1 does not exist.* 2 others are there") as caught:
        save(images=[outside.address + "/mlops/driver:1", *images])
    saved = save()
    assert not saved["changed"]
    # The bundle is complete, and the side that loads it needs its checksum.
    assert caught.value.details["checksum"] == saved["checksum"]
    assert caught.value.message.endswith(". Checksum of the bundle: " + saved["checksum"])
    with pytest.raises(NpuError, match="/mlops/driver:1 does not exist"):
        save(images=[outside.address + "/mlops/driver:1"])


def test_an_index_that_is_known_by_its_tag_only(inside, outside, images):
    """Named with tag and digest, as with every image that is pinned."""
    name, digest = next(iter(images.items()))
    del outside.manifests[("npuops/agent", digest)]
    run(images=[name + "@" + digest], to=inside.address + "/site", registries=access(outside, inside))
    assert registry_server.sha256(inside.manifests[("site/npuops/agent", "1")][0]) == digest
    outside.put_manifest("npuops/agent", "1", outside.manifests[("mlops/driver", "25.5.0-910b")][0], manifests.OCI_MANIFEST)
    with pytest.raises(NpuError, match=digest):
        run(images=[name + "@" + digest], to=inside.address + "/other", registries=access(outside, inside))


def test_what_the_destination_refuses_stops_no_other_image(outside, inside, images):
    inside.faults = [("PUT", "npuops/agent/manifests/1$", 400)]
    wanted = {"images": list(images), "to": inside.address + "/site", "registries": access(outside, inside)}
    with pytest.raises(NpuError, match="/site/npuops/agent:1 was not copied: .* answered 400 .* 1 others are there"):
        run(**wanted)
    assert ("site/mlops/driver", "25.5.0-910b") in inside.manifests
    inside.faults = []
    assert run(**wanted)["changed"] and ("site/npuops/agent", "1") in inside.manifests
