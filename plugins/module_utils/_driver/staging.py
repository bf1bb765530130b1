# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stage a driver: extract an image from a registry into a release on the host, completely or not at all. From packages, see
package_staging.

Changes no link: the loaded driver and the driver of the next boot stay the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules, pci, symvers
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._driver import releases
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import ctr as image_ctr
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime

# A layer unpacks to about twice its size, and its compressed form also exists temporarily; plus a margin.
_SPACE_FACTOR = 3
_SPACE_MARGIN = 64 * 1024 * 1024


class ReleaseStager:
    """What staging from an image and from a package have in common.

    ``origin``: name of the image or package, for messages; ``digest``: its digest; ``version``: required version in version.info,
    None for any; ``root``: directory that contains releases; ``kernel``: ``uname -r``, None for the running one; ``timeout``:
    seconds, for another run; ``verify``: whether to compare the content of an already staged release with its checksums.
    """

    def __init__(self, origin, digest, version=None, root="/var/lib/Ascend", kernel=None, timeout=1800, verify=False):
        self.origin = origin
        self.digest = digest
        self.version = version
        self.layout = releases.Layout(root)
        self.machine = os.uname().machine
        self.kernel = kernel or os.uname().release
        self.timeout = timeout
        self.verify = verify
        self.size = None
        self.release = None

    def reason(self):
        """Why something has to be staged, as a sentence, or None."""
        self.release = self._find()
        if self.release is None:
            return "%s (%s) is not staged for kernel %s" % (self.origin, self.digest, self.kernel)
        damage = self._damage()
        if damage is None:
            self._check_kernel()
            return None
        if self.release in self.layout.running():
            raise NpuError(
                "The staged driver is damaged: %s. It is not replaced because it is in use. Stop the programs that use it, remove "
                "%s and the links to it, and run again" % (damage, self.layout.release_path(self.release)),
                release=self.release,
            )
        return "The staged driver is damaged: %s" % damage

    @property
    def expected_release(self):
        """The name that the release will have, or None if the version or the digest is unknown."""
        if self.version and self.digest:
            return self.layout.release_name(self.version, self.kernel, self.digest)
        return None

    def stage(self):
        """Fetch, verify, copy and commit; returns the name of the release. Call ``reason`` and ``check`` before."""
        with self.layout.lock(self.timeout):
            # Another run may have staged it in the meantime.
            self.release = self._find()
            if self.release is not None:
                if self._damage() is None:
                    self._complete()
                    return self.release
                self.layout.discard(self.release)
            self.release = self._stage()
        return self.release

    def _stage(self):
        """Create the release, with the lock held; returns its name."""
        raise NotImplementedError

    def _damage(self):
        """Why the release has to be staged again, or None."""
        return self.layout.damage(self.release, self.verify)

    def _check_kernel(self):
        """Raise NpuError if the kernel was built again since the release was staged, and refuses its modules now.

        Not for the release that runs: its modules are loaded.
        """
        exported = symvers.of_kernel(self.kernel) if self.release not in self.layout.running() else None
        if exported is not None:
            driver_tree.check_staged(self.layout.tree(self.release), exported)

    def _complete(self):
        """Add what a release that stays lacks, with the lock held."""

    def _find(self):
        """The complete release with this digest and kernel, or None; raises NpuError if it has another version."""
        for name in self.layout.releases():
            manifest = self.layout.manifest(name)
            if manifest.get("digest") == self.digest and manifest.get("kernel") == self.kernel:
                if self.version and manifest.get("version") != self.version:
                    raise driver_tree.another_version(self.origin, manifest.get("version"), self.version)
                return name
        return None

    def _commit(self, tree, found, source, put_firmware):
        """Copy ``tree`` (``found`` is what ``driver_tree.inspect`` says of it) into a new release and commit it; returns its name.

        ``source``: what the manifest says of where the driver is from, as a dict; ``put_firmware(directory)``: puts the firmware
        of the release, if it has one, into its directory, and returns what the manifest says of it, or None.
        """
        name = self.layout.release_name(found.version, self.kernel, self.digest)
        directory = self.layout.new_directory()
        target = os.path.join(directory, "driver")
        try:
            copy_tree(tree, target)
            for inside, file in sorted(found.extra.items()):
                os.makedirs(os.path.dirname(os.path.join(target, inside)), mode=0o755, exist_ok=True)
                copy_file(file, os.path.join(target, inside))
            with open(os.path.join(target, driver_tree.LOAD_PLAN), "w", encoding="utf-8") as stream:
                stream.write("".join(line + "\n" for line in found.plan))
                os.fchmod(stream.fileno(), 0o444)
            label(target, found.modules)
            files, sizes = digests(target)
            brings = put_firmware(directory)
        except BaseException as exc:
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(exc, OSError) and exc.errno in releases.NO_SPACE:
                raise full(self.layout.root) from None
            raise
        manifest = {
            "version": found.version,
            "kernel": self.kernel,
            "digest": self.digest,
            "modules": found.modules,
            "files": files,
            "sizes": sizes,
            "firmware": brings,
        }
        self.layout.commit(directory, name, dict(manifest, **source))
        return name


def full(root):
    """The NpuError for a file system of ``root`` without space."""
    return NpuError("The file system of %s is full. Free some space and run again" % root)


class Stager(ReleaseStager):
    """One driver image for one host.

    ``image``: reference; ``upstream``: the one to record, None for the same; ``digest``: digest of its tag, None to query the
    registry; ``path``: path of the tree inside the image, None to search for it; ``containerd_address``, ``ctr``: socket and
    program, None to use those of the kubelet's containerd; ``timeout``: seconds, also for the pull. Other arguments: as of
    ReleaseStager.
    """

    def __init__(
        self,
        image,
        digest=None,
        version=None,
        root="/var/lib/Ascend",
        kernel=None,
        path=None,
        username=None,
        password=None,
        plain_http=False,
        ca_file=None,
        containerd_address=None,
        ctr=None,
        timeout=1800,
        verify=False,
        upstream=None,
    ):
        self.reference = parse_reference(image)
        self.upstream = parse_reference(upstream or image)
        if digest and self.reference.digest and digest != self.reference.digest:
            raise NpuError("The image %s has another digest than the option digest (%s): set only one of them" % (image, digest))
        super().__init__(str(self.reference), digest or self.reference.digest, version, root, kernel, timeout, verify)
        self.path = path
        self.ca_file = ca_file
        self.client = RegistryClient(self.reference.registry, username, password, plain_http, ca_file)
        self.containerd_address = containerd_address
        self.ctr = ctr
        self.annotations = {}

    def reason(self):
        """Why something has to be staged, as a sentence, or None. Queries the registry only if necessary."""
        if self.digest is None:
            named = self.client.resolve(self.reference.repository, self.reference.tag)
            self.digest = self.client.for_machine(self.reference.repository, named, self.machine).digest
        return super().reason()

    def check(self):
        """Raise NpuError for all problems that can be detected before the pull. Sets ``size``: bytes to pull."""
        manifest = self.client.image(self.reference.repository, self.digest, self.machine)[1]
        self.size = sum(layer["size"] for layer in manifest["layers"])
        self.annotations = manifest.get("annotations") or {}
        built_for = self.annotations.get("npuops.ascend/kernel")
        if built_for and built_for != self.kernel and not self._may_have_same_kabi(str(built_for)):
            raise NpuError(
                "%s was built for kernel %s, not for %s" % (self.reference, printable(built_for), self.kernel),
                kernel=self.kernel,
                kernels=[built_for],
            )
        check_place(self.layout.root, self.size, self._address())

    def _address(self):
        """The socket of containerd, or None. Check mode does without one."""
        if self.containerd_address is None:
            with contextlib.suppress(NpuError):
                return kubelet_runtime.containerd_access()[0]
        return self.containerd_address

    def _may_have_same_kabi(self, built_for):
        """Whether only the modules of an image for the kernel ``built_for`` can tell whether this host's kernel loads them.

        Distributions keep symbol versions only in updates of one version of Linux, which is before the dash.
        """
        return built_for.partition("-")[0] == self.kernel.partition("-")[0] and symvers.of_kernel(self.kernel) is not None

    def _stage(self):
        containerd = self._containerd()
        with containerd.session(self.timeout):
            image = containerd.pull(
                self.reference.name,
                self.digest,
                self.client,
                self.reference.repository,
                self.ca_file,
                self.timeout,
            )
            with containerd.mounted(image) as top:
                return self._copy(top)

    def _containerd(self):
        """The containerd to pull with: the kubelet's, unless another one is given."""
        address, ctr = self.containerd_address, [self.ctr] if self.ctr else None
        if address is None:
            address, found = kubelet_runtime.containerd_access()
            ctr = ctr or found
        return image_ctr.Containerd(address, ctr)

    def _copy(self, top):
        """Create the release from the image mounted at ``top``; returns its name."""
        tree = driver_tree.find(top, self.path)
        demand, exported = kernel_modules.signature_demand(), symvers.of_kernel(self.kernel)
        found = driver_tree.inspect(top, tree, self.kernel, self.machine, self.version, demand, exported)
        package = firmware.find(top)
        _check_declared(self.reference, self.annotations, package)
        family = pci.family_of(pci.chip_functions())
        if package is not None and family is not None:
            package.check_chip(family.key)
        source = {"image": str(self.upstream)}
        return self._commit(tree, found, source, lambda directory: _copy_firmware(package, top, directory))


def _check_declared(reference, annotations, package):
    """Raise NpuError if the image has other firmware than its annotations say, by which the plan has judged."""
    version = annotations.get(firmware.ANNOTATION_VERSION)
    if version is None:
        return
    drivers = firmware.prefixes(str(annotations.get(firmware.ANNOTATION_DRIVERS) or ""))
    if package is None or (package.version, package.drivers) != (version, drivers):
        raise NpuError(
            "The annotations of %s declare the firmware %s for drivers %s, but it has %s for %s. Build the image with "
            "npuops.ascend.build_driver_image"
            % (
                reference,
                printable(str(version)),
                ", ".join(drivers) or "any",
                package.version if package else "none",
                (", ".join(package.drivers) if package else "") or "any",
            )
        )


def _copy_firmware(package, top, directory):
    """Copy the firmware package of the image mounted at ``top``, if it has one; returns what the manifest says of it."""
    if package is None:
        return None
    target = os.path.join(directory, firmware.DIRECTORY)
    os.mkdir(target)
    os.chmod(target, 0o755)
    for name in (firmware.VERSION_INFO, package.package):
        copy_file(os.path.join(top, firmware.DIRECTORY, name), os.path.join(target, name))
    return firmware_entry(package, os.path.join(target, package.package))


def firmware_entry(package, path):
    """What the manifest of a release says of the ``Firmware`` whose .run file is at ``path``."""
    return {
        "version": package.version,
        "drivers": package.drivers,
        "package": package.package,
        "size": os.path.getsize(path),
        "sha256": releases.file_digest(path),
    }


def check_place(root, size, address=None):
    """Raise NpuError unless programs can run below ``root`` and there is space for an image of ``size`` bytes, there and where the
    containerd at the socket ``address`` keeps it."""
    for why in host_mounts.unfit_for_driver(root):
        raise NpuError(why)
    place = host_mounts.nearest(os.path.realpath(root))
    needed = space_needed(size)
    places = {os.stat(place).st_dev: (root, place)}
    for directory in containerd_runtime.image_places(address):
        places.setdefault(os.stat(directory).st_dev, (directory, directory))
    for name, directory in places.values():
        free = host_mounts.free_bytes(directory)
        if free < needed:
            raise NpuError(
                "Not enough space in %s: %d MiB are free, but the driver image needs %d MiB (layers of %d MiB, unpacked and "
                "copied). Free some space, or set npu_driver_root to another file system"
                % (name, free // 2**20, -(-needed // 2**20), -(-size // 2**20)),
                free_bytes=free,
                needed_bytes=needed,
            )


def space_needed(size):
    """Bytes that must be free to stage an image with layers of ``size`` bytes, which are unpacked and then copied."""
    return size * _SPACE_FACTOR + _SPACE_MARGIN


def copy_tree(source, target):
    """Copy the directory ``source`` to ``target`` (new), owned by root and without links that leave it.

    Directories get the mode 0755. Files keep their mode, but without write permission for group and others and without setuid.
    Relative links that stay inside are kept. Raises NpuError for other links, and for everything that is not a file, directory or
    link.
    """
    os.mkdir(target)
    os.chmod(target, 0o755)
    links = []
    for entry in sorted(os.scandir(source), key=lambda one: one.name):
        _copy_entry(entry, source, source, target, links)
    inside = os.path.realpath(target) + "/"
    for link in links:
        # A path that looks inside may still leave the tree through another link.
        if not (os.path.realpath(link) + "/").startswith(inside):
            raise NpuError("The link %s in the image leads out of the driver tree" % os.path.relpath(link, target))


def _copy_entry(entry, top, directory, target, links):
    path = os.path.join(target, entry.name)
    inside = os.path.relpath(entry.path, top)
    if entry.is_symlink():
        value = os.readlink(entry.path)
        end = os.path.normpath(os.path.join(os.path.dirname(inside), value))
        if os.path.isabs(value) or end == ".." or end.startswith("../"):
            raise NpuError("The link %s -> %s in the image leads out of the driver tree" % (printable(inside), printable(value)))
        os.symlink(value, path)
        links.append(path)
    elif entry.is_dir():
        os.mkdir(path)
        os.chmod(path, 0o755)
        for child in sorted(os.scandir(entry.path), key=lambda one: one.name):
            _copy_entry(child, top, entry.path, path, links)
    elif entry.is_file():
        copy_file(entry.path, path)
    else:
        raise NpuError("%s in the image is not a file, directory or link" % printable(inside))


def copy_file(source, target):
    """Copy one file to ``target`` (new), which root can read and no other user can write. Raises NpuError for what is no file."""
    with image_files.opened(source) as reader, open(target, "xb") as writer:
        while True:
            block = reader.read(1024 * 1024)
            if not block:
                break
            writer.write(block)
        # Always readable by root, never writable by others, and without setuid, setgid and the sticky bit.
        os.fchmod(writer.fileno(), stat.S_IMODE(os.fstat(reader.fileno()).st_mode) & 0o755 | 0o400)


def digests(tree):
    """(path -> sha256, path -> size) of all files in ``tree``; links are omitted."""
    files = {}
    sizes = {}
    for directory, dummy, names in os.walk(tree):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.islink(path):
                continue
            inside = os.path.relpath(path, tree)
            files[inside] = releases.file_digest(path)
            sizes[inside] = os.path.getsize(path)
    return files, sizes


# SELinux: the kernel loads modules only with the type modules_object_t; containers must be able to read everything else.
_MODULE_TYPES = ("modules_object_t",)
_TREE_TYPES = ("container_ro_file_t", "container_share_t", "usr_t")


def label(tree, modules, selinux="/sys/fs/selinux"):
    """Set the SELinux types of ``tree`` that pods and the kernel require, if SELinux is enabled."""
    if not os.path.exists(os.path.join(selinux, "context")):
        return
    plain = _first_context(_TREE_TYPES, selinux)
    module = _first_context(_MODULE_TYPES, selinux)
    modules = {os.path.join(tree, path) for path in modules}
    paths = [os.path.dirname(tree), tree]
    for directory, names, files in os.walk(tree):
        paths.extend(os.path.join(directory, name) for name in names + files)
    for path in paths:
        context = module if path in modules else plain
        if context:
            os.setxattr(path, "security.selinux", context, follow_symlinks=False)


def _first_context(types, selinux):
    """The context of the first of ``types`` that the loaded policy supports, or None."""
    for name in types:
        context = b"system_u:object_r:%s:s0\0" % name.encode("ascii")
        try:
            with open(os.path.join(selinux, "context"), "wb", buffering=0) as stream:
                stream.write(context)
        except OSError:
            continue
        return context
    return None
