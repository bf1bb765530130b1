# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job of AWX, or of Automation Platform, that a playbook runs in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def job_of(variables: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str] | None:
    """{id, url, user, workflow} with what is known of them, or None where no such job runs this.

    ``variables``: a host's; AWX gives each job extra variables that begin with ``awx_``. ``environ``: of the process; AWX
    sets AWX_HOST, its own base URL, and JOB_ID (awx/main/tasks/jobs.py and models/unified_jobs.py, 24.6.1).
    """
    number = str(variables.get("awx_job_id") or environ.get("JOB_ID") or "")
    if not number:
        return None
    base = environ.get("AWX_HOST", "").rstrip("/")
    found = {
        "id": number,
        "url": "%s/#/jobs/playbook/%s" % (base, number) if base else None,
        "user": variables.get("awx_user_name"),
        "workflow": str(variables.get("awx_workflow_job_id") or "") or None,
    }
    return {key: value for key, value in found.items() if value}
