# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references, judged by the grammar that container engines share."""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import reference as image_reference
from hypothesis import assume, example, given
from hypothesis import strategies as st

from support.properties import STRANGE, bounded, damaged, few, megabytes

# https://pkg.go.dev/github.com/distribution/reference#pkg-overview, word for word
ALPHA_NUMERIC = "[a-z0-9]+"
SEPARATOR = "(?:[_.]|__|[-]+)"
PATH_COMPONENT = "%s(?:%s%s)*" % (ALPHA_NUMERIC, SEPARATOR, ALPHA_NUMERIC)
REMOTE_NAME = "%s(?:/%s)*" % (PATH_COMPONENT, PATH_COMPONENT)
DOMAIN_COMPONENT = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
DOMAIN_NAME = r"%s(?:\.%s)*" % (DOMAIN_COMPONENT, DOMAIN_COMPONENT)
IPV6 = r"\[(?:[a-fA-F0-9:]+)\]"
DOMAIN = "(?:%s|%s)(?::[0-9]+)?" % (DOMAIN_NAME, IPV6)
NAME = "(?:%s/)?%s" % (DOMAIN, REMOTE_NAME)
TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
REFERENCE = re.compile("(?P<name>%s)(?::(?P<tag>%s))?(?:@(?P<digest>%s))?" % (NAME, TAG, DIGEST))
# Its NameTotalLengthMax: registry and repository together.
LONGEST_NAME = 255

registries = st.one_of(
    st.from_regex(r"\A%s(?::[0-9]{1,5})?\Z" % DOMAIN_NAME, fullmatch=True),
    st.from_regex(r"\A\[[0-9a-f:]{1,12}\](?::[0-9]{1,5})?\Z", fullmatch=True),
    st.sampled_from(("docker.io", "index.docker.io", "localhost", "localhost:5000", "r.example", "UPPER", "h:0")),
)
repositories = st.from_regex(r"\A%s\Z" % REMOTE_NAME, fullmatch=True)
tags = st.from_regex(r"\A%s\Z" % TAG, fullmatch=True)
digests = st.text("0123456789abcdef", min_size=64, max_size=64).map("sha256:".__add__)


@st.composite
def references(draw):
    text = draw(st.one_of(repositories, st.tuples(registries, repositories).map("/".join)))
    text += draw(st.one_of(st.just(""), tags.map(":".__add__)))
    return text + draw(st.one_of(st.just(""), digests.map("@".__add__)))


def parsed(text):
    """The Reference, or None if it is refused as documented."""
    try:
        with bounded():
            reference = image_reference.parse_reference(text)
    except NpuError as exc:
        assert "is not a valid image reference" in exc.message
        return None
    assert reference.registry and reference.repository and (reference.tag or reference.digest)
    return reference


def wanted(text):
    """(name with its registry, tag, digest) as container engines read it, or None if they refuse it."""
    match = REFERENCE.fullmatch(text)
    if not match:
        return None
    domain, slash, remote = match["name"].partition("/")
    if not slash or not (set(".:") & set(domain) or domain == "localhost" or domain != domain.lower()):
        domain, remote = "docker.io", match["name"]
    if domain in ("docker.io", "index.docker.io"):
        domain, remote = "docker.io", remote if "/" in remote else "library/" + remote
    name = "%s/%s" % (domain, remote)
    # Of 0_0.0/0 the grammar takes the first part for a repository, and whatever splits off registries does not.
    if len(name) > LONGEST_NAME or not re.fullmatch(DOMAIN, domain) or not re.fullmatch(REMOTE_NAME, remote):
        return None
    if re.search(r":[0-9]{6,}\Z", domain):
        return None  # no port
    if match["digest"] and not re.fullmatch("sha256:[0-9a-f]{64}", match["digest"]):
        return None  # ours takes no others
    return name, match["tag"] or (None if match["digest"] else "latest"), match["digest"]


def compare(text):
    reference = parsed(text)
    assert (reference and (reference.name, reference.tag, reference.digest)) == wanted(text)
    return reference


@given(references())
@example("r.example/" + "a" * 245)
@example("r.example/" + "a" * 246)
@example("a" * 243)
@example("a" * 244)
def test_what_the_grammar_has_is_read_as_engines_read_it(text):
    compare(text)


@given(
    st.one_of(
        damaged(references(), (":", "@", "/", "_", "__", "-", "..", "A", "sha256:")),
        st.text(STRANGE + "a.:@/-_", max_size=12),
        st.text("aA0.:@/-_[]", max_size=16),
        st.text(max_size=12),
    )
)
@example("a/b:c\n")
@example("a:5000/b\n")
def test_what_the_grammar_does_not_have_is_refused(text):
    compare(text)


@given(references())
def test_a_printed_reference_is_the_same_one(text):
    reference = parsed(text)
    assume(reference)
    assert parsed(str(reference)) == reference


@few
@given(megabytes({"a", "a.", "a/", "a-", "__", "a:", "@", "[", "0", "A", "-", "sha256:"}))
def test_megabytes_are_read_or_refused_in_time(text):
    parsed(text)


@given(tags, st.lists(tags, max_size=20))
def test_tags_that_are_suggested_exist(tag, existing):
    near = image_reference.near_tags(tag, existing)
    assert len(near) <= 8 and set(near) <= set(existing)
    assert image_reference.is_tag(tag) and not image_reference.is_tag(tag + "\n")
