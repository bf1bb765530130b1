# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a ctr does that this collection sees: it keeps images, leases and containers, pulls with the credentials of hosts.toml, mounts
and runs. Its state is files in a directory.

A mount is a directory full of files, so unmounting is emptying it; the test's umount does that. A container is a process of this
machine in a session of its own, so it outlives ctr as containerd's do; all paths are this machine's, and those of the image begin with
STATE/rootfs. What ctr 1.7.35, 2.1.9 and 2.3.7 do with a container was tried with these versions.

STATE/pull-hangs and STATE/containerd-down: as long as they exist. STATE/pull-says: what a pull that fails prints.
"""

from __future__ import annotations

CTR = """\
#!{python} -IS
# Most calls need no more than these: others cost more than the call.
import os, sys, time
state = {state!r}
arguments = sys.argv[5:]
with open(state + "/calls", "a") as stream:
    stream.write(" ".join(arguments).replace("\\n", " ") + "\\n")
assert sys.argv[1] == "-a" and sys.argv[3:5] == ["-n", {namespace!r}], sys.argv
if os.path.exists(state + "/containerd-down"):
    sys.exit("ctr: failed to dial \\"containerd.sock\\": connection refused")

def names(kind):
    return sorted(os.listdir(state + "/" + kind))

def process(name):
    path = state + "/containers/" + name
    if not os.path.exists(path):
        sys.exit("ctr: container %s: not found" % name)
    number = int(open(path).read())
    try:
        with open("/proc/%d/stat" % number) as stream:
            return None if stream.read().rpartition(")")[2].split()[0] == "Z" else number
    except OSError:
        return None

if arguments[1:] == ["ls", "-q"]:
    print("\\n".join(name.replace("%", "/") for name in names(arguments[0])))
elif arguments[:3] == ["leases", "create", "--id"]:
    open(state + "/leases/" + arguments[3], "w").close()
elif arguments[:2] == ["containers", "rm"]:
    if process(arguments[2]):
        sys.exit("ctr: cannot delete a non stopped container")
    os.unlink(state + "/containers/" + arguments[2])
elif arguments[:3] == ["tasks", "rm", "--force"]:
    number = process(arguments[3])
    if not number:
        sys.exit("ctr: no running task found")
    os.killpg(number, 9)
    while process(arguments[3]):
        time.sleep(0.01)
elif arguments[1] == "rm":
    assert arguments[0] == "images" or arguments[2] == "--sync"
    assert arguments[0] == "leases" or not os.path.isdir(state + "/containers") or names("containers") == []
    for name in [name for name in arguments[2:] if name != "--sync"]:
        os.unlink(state + "/" + arguments[0] + "/" + name.replace("/", "%"))
elif arguments[:3] == ["images", "pull", "--help"]:
    print("--local  Fetch content from local client")
elif arguments[:2] == ["images", "pull"]:
    import hashlib, json, re, urllib.request
    hosts, reference = arguments[3], arguments[-1]
    assert "5" not in names("leases")
    open(state + "/leases/1", "w").close()
    while os.path.exists(state + "/pull-hangs"):
        time.sleep(0.02)
    print("progress " * 10**5)
    if os.path.exists(state + "/pull-says"):
        sys.exit(open(state + "/pull-says").read())
    registry, path = reference.split("@")[0].split("/", 1)
    toml = hosts + "/" + registry + "/hosts.toml"
    assert os.stat(toml).st_mode & 0o777 == 0o600
    text = open(toml).read()
    server = re.search('server = "(.*)"', text).group(1)
    header = re.search('Authorization = "(.*)"', text)
    def get(kind, what):
        request = urllib.request.Request("%s/v2/%s/%s/%s" % (server, path, kind, what))
        if header:
            request.add_header("Authorization", header.group(1))
        try:
            return urllib.request.urlopen(request).read()
        except urllib.error.HTTPError as exc:
            sys.exit("ctr: failed to copy: " + ("unexpected status 401 Unauthorized" if exc.code == 401 else "500 Internal"))
    manifest = json.loads(get("manifests", reference.split("@")[1]))
    for layer in manifest["layers"]:
        content = get("blobs", layer["digest"])
        if "sha256:" + hashlib.sha256(content).hexdigest() != layer["digest"]:
            sys.exit("ctr: failed commit on ref: unexpected commit digest sha256:0, expected %s: failed precondition" % layer["digest"])
        with open(state + "/layer", "wb") as stream:
            stream.write(content)
    with open(state + "/images/" + reference.replace("/", "%"), "w") as stream:
        pass
elif arguments[0] == "run" or arguments[:2] == ["images", "mount"]:
    import signal, subprocess, tarfile
    position = 2
    if arguments[0] == "run":
        position = 1
        while arguments[position].startswith("-"):
            position += 1 if arguments[position] in ("--rm", "--privileged", "--net-host") else 2
    reference, name = arguments[position : position + 2]
    target = state + "/rootfs" if arguments[0] == "run" else name
    assert reference.replace("/", "%") in names("images")
    assert not os.path.exists(os.path.dirname(target) + "/hosts")
    with tarfile.open(state + "/layer") as archive:
        archive.extractall(target, filter="fully_trusted") if hasattr(tarfile, "data_filter") else archive.extractall(target)
    open(state + "/leases/" + target.replace("/", "%"), "w").close()
    if arguments[0] == "run":
        if os.path.exists(state + "/containers/" + name):
            sys.exit("ctr: container %s: already exists" % name)
        container = subprocess.Popen(arguments[position + 2 :], start_new_session=True)
        with open(state + "/container.new", "w") as stream:
            stream.write(str(container.pid))
        os.rename(state + "/container.new", state + "/containers/" + name)
        signal.signal(signal.SIGTERM, lambda number, frame: os.kill(container.pid, number))
        code = container.wait()
        try:
            os.unlink(state + "/containers/" + name)
        except FileNotFoundError:  # removed meanwhile
            pass
        sys.exit(code if code >= 0 else 128 - code)
else:
    sys.exit("unknown " + repr(arguments))
"""
