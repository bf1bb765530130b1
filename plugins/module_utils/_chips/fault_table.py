# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fault codes of chips: what they mean, and what MindCluster's device plugin does about them. Data only.

The levels are those of the device plugin's faultCode.json in the release ``SOURCE``; a site can change them for its plugin, in the
ConfigMap mindx-dl-fault-config. The plugin knows eight times as many codes. Here are those that MindCluster's own fault diagnosis
describes and that concern the memory of a chip, its cores, its heat and power, its links and its own software, in our words.
"""

from __future__ import annotations

SOURCE = "MindCluster v26.1.0"

NOT_HANDLED = "NotHandleFault"
SUB_HEALTHY = "SubHealthFault"
REQUEST = "RestartRequest"
BUSINESS = "RestartBusiness"
FREE_RESTART = "FreeRestartNPU"
RESTART = "RestartNPU"
PRE_SEPARATE = "PreSeparateNPU"
SEPARATE = "SeparateNPU"

# level: what the device plugin does, from the least to the worst.
LEVELS = {
    NOT_HANDLED: "nothing is done",
    SUB_HEALTHY: "the chip stays in service, and jobs may be moved",
    REQUEST: "the chip is withdrawn until the fault ends; the request or the job has to be repeated",
    BUSINESS: "the chip is withdrawn until the fault ends; the job has to be repeated",
    FREE_RESTART: "the chip is withdrawn, and has to be reset when no job uses it",
    RESTART: "the chip is withdrawn, and has to be reset",
    PRE_SEPARATE: "the chip is withdrawn when no job uses it",
    SEPARATE: "the chip is withdrawn, and may have to be replaced",
}
# Those at which the plugin keeps a chip in service.
KEPT = (NOT_HANDLED, SUB_HEALTHY)

# code: (level, meaning)
CODES = {
    # HBM, the memory of 910 chips, and its controller
    "80E01801": (BUSINESS, "uncorrectable HBM error in an address that is still in use"),
    "80E01809": (NOT_HANDLED, "uncorrectable HBM error found by the patrol read"),
    "80E18400": (NOT_HANDLED, "uncorrectable HBM error in the memory of a process"),
    "80E18401": (NOT_HANDLED, "16 or more HBM rows are isolated after uncorrectable errors"),
    "80E18402": (SEPARATE, "64 HBM rows are isolated after uncorrectable errors: no more can be"),
    "80E18404": (RESTART, "so many uncorrectable HBM errors that their reports are suppressed"),
    "80E00209": (NOT_HANDLED, "HBM is hotter than 95 degrees Celsius"),
    "80E0020B": (SEPARATE, "HBM is critically hot"),
    "80E18000": (RESTART, "the HBM controller failed"),
    "80E18005": (RESTART, "parity error in the HBM controller"),
    "80E18008": (RESTART, "uncorrectable error in the SRAM of the HBM controller"),
    "80E1800A": (RESTART, "the HBM controller does not get an answer in time"),
    "80F38000": (RESTART, "the bus adapter of the HBM failed"),
    "80F38003": (NOT_HANDLED, "wrong configuration of the bus adapter of the HBM"),
    "80F38008": (RESTART, "uncorrectable error in the SRAM of the bus adapter of the HBM"),
    "80F38009": (NOT_HANDLED, "bus error at the bus adapter of the HBM"),
    "80F2180D": (RESTART, "both copies of the image of the HBM's bus adapter are damaged"),
    # DDR, the memory of 310 and 310P chips, and its controller
    "80DE0207": (SUB_HEALTHY, "DDR is too hot"),
    "80DE1801": (RESTART, "uncorrectable DDR error"),
    "80DE1803": (NOT_HANDLED, "uncorrectable DDR error found by the patrol read"),
    "80DF8000": (RESTART, "the DDR controller failed"),
    "80DF8008": (RESTART, "uncorrectable error in the SRAM of the DDR controller"),
    "80DF8009": (RESTART, "bus error at the DDR controller"),
    "80DF800A": (RESTART, "the DDR controller does not get an answer in time"),
    "80DF8400": (NOT_HANDLED, "uncorrectable DDR error in the memory of a process"),
    "80DF8402": (SEPARATE, "64 DDR addresses are isolated after uncorrectable errors: no more can be"),
    "80F18000": (RESTART, "the DDR controller answered with an error"),
    "80F18008": (RESTART, "uncorrectable error in the SRAM of the bus adapter of the DDR"),
    # caches
    "80A38008": (RESTART, "uncorrectable error in the data of the L3 cache"),
    "80A58008": (RESTART, "uncorrectable error in the tags of the L3 cache"),
    "80CD8008": (RESTART, "uncorrectable error in the L2 buffer"),
    # the cores that compute
    "80C98000": (REQUEST, "the instructions of an AI core differ from those in memory"),
    "80C98001": (RESTART, "an AI core could not be reset"),
    "80C98002": (REQUEST, "an AI core got input that it cannot process: a fault of the operator, or of its input"),
    "80C98003": (REQUEST, "wrong configuration of an AI core"),
    "80C98008": (REQUEST, "uncorrectable error in the memory of an AI core"),
    "80C98009": (REQUEST, "an AI core used an address that does not exist: usually a fault of the software"),
    "80C9800A": (REQUEST, "a task of an AI core took too long: usually a fault of the operator"),
    "80CB8000": (REQUEST, "the instructions of a vector core differ from those in memory"),
    "80CB8001": (RESTART, "a vector core could not be reset"),
    "80CB8002": (REQUEST, "a vector core got input that it cannot process: a fault of the operator, or of its input"),
    "80CB8008": (REQUEST, "uncorrectable error in the memory of a vector core"),
    "80CB8009": (REQUEST, "a vector core used an address that does not exist: usually a fault of the software"),
    "80CB800A": (REQUEST, "a task of a vector core took too long: usually a fault of the operator"),
    "80818C00": (SEPARATE, "the AI CPU found inexact results: a fault of the chip, or of the operator"),
    "80818C05": (SEPARATE, "the chip may compute wrong results: high risk"),
    "80818C06": (SUB_HEALTHY, "the chip may compute wrong results: low risk"),
    "80CF8000": (RESTART, "a DMA channel (SDMA) could not be reset"),
    # what distributes tasks
    "80F78003": (RESTART, "conflicting configuration of the task scheduler"),
    "80F78008": (RESTART, "uncorrectable error in the task scheduler"),
    "80F78009": (RESTART, "bus error at the task scheduler"),
    "80F78C02": (RESTART, "a task queue (RTSQ) hangs"),
    "80F78C03": (RESTART, "a task queue (ACSQ) hangs"),
    "80F78C04": (RESTART, "a DMA channel to the host hangs"),
    "80FA4E00": (RESTART, "the task scheduler has no heartbeat"),
    "812E4E00": (RESTART, "the firmware of the task scheduler has no heartbeat"),
    "80C78008": (RESTART, "uncorrectable error in the doorbell memory of the task scheduler"),
    # the chip's own processor and its software
    "80A18005": (NOT_HANDLED, "parity error in a CPU core of the chip"),
    "80A18008": (RESTART, "uncorrectable error in a CPU core of the chip"),
    "40F84E00": (RESTART, "the chip's operating system has no heartbeat for the host"),
    "8C03A000": (RESTART, "the process procmgr of the chip's operating system has no heartbeat"),
    "8C044E00": (FREE_RESTART, "the process iammgr of the chip's operating system has no heartbeat"),
    "8C064E00": (FREE_RESTART, "the process proclauncher of the chip's operating system has no heartbeat"),
    "8C084E00": (FREE_RESTART, "the process adda of the chip's operating system has no heartbeat"),
    "8C0A4E00": (FREE_RESTART, "the process dmp_daemon of the chip's operating system has no heartbeat"),
    "8C0C4E00": (FREE_RESTART, "the process sklogd of the chip's operating system has no heartbeat"),
    "8C0E4E00": (FREE_RESTART, "the process slogd of the chip's operating system has no heartbeat"),
    "8C104E00": (FREE_RESTART, "the process log-daemon of the chip's operating system has no heartbeat"),
    "8C124E00": (FREE_RESTART, "the process hdcd of the chip's operating system has no heartbeat"),
    "8C204E00": (BUSINESS, "the process tsdaemon of the chip's operating system has no heartbeat"),
    "8C17A005": (FREE_RESTART, "a process of the AI CPU cannot be ended"),
    "8C1DA005": (FREE_RESTART, "a process with custom AI CPU operators cannot be ended"),
    "8C19A005": (FREE_RESTART, "a process of the queue scheduler cannot be ended"),
    "8C1FA006": (RESTART, "a process of collective communication (hccp) cannot be ended"),
    "8C2FA001": (SUB_HEALTHY, "the chip's operating system is short of memory"),
    "8C2FA009": (NOT_HANDLED, "the chip has booted: it was reset, or switched on"),
    # heat, power, clocks
    "80E20207": (SUB_HEALTHY, "the chip is too hot"),
    "80E21007": (NOT_HANDLED, "too much current on the main supply of the chip"),
    "80E21008": (RESTART, "the chip cannot limit its current"),
    "80E2120D": (RESTART, "the power controller reports an alarm, or its bus (PMBus) is broken"),
    "80E24E00": (RESTART, "the power management of the chip has no heartbeat"),
    "80E38008": (RESTART, "uncorrectable error in the power management of the chip"),
    "80E39200": (RESTART, "the temperature sensor of the chip is broken"),
    "80E3A201": (SEPARATE, "the voltage of the chip cannot be set"),
    "80E3A202": (RESTART, "the frequency of the chip cannot be set"),
    "80E3A203": (RESTART, "the current of the chip cannot be measured"),
    # links
    "80B98000": (RESTART, "PCIe failed, or has frequent errors"),
    "80B98008": (RESTART, "uncorrectable error in the PCIe controller"),
    "80B58000": (RESTART, "a serial link of the chip (SIOE) failed"),
    "80B78000": (RESTART, "the controller of a serial link of the chip (SLLC) failed"),
    "819B8003": (NOT_HANDLED, "wrong configuration of HCCS, the link to other chips"),
    "81078603": (NOT_HANDLED, "the network port of the chip is down"),
    "81078605": (SUB_HEALTHY, "lanes of the network port of the chip are down"),
    "80BB8000": (REQUEST, "RoCE, the network of the chip, failed"),
    "80BB8003": (REQUEST, "wrong configuration of RoCE"),
    "80BB8008": (REQUEST, "uncorrectable error in the memory of RoCE"),
    "80BB8009": (REQUEST, "bus error at RoCE"),
    "80BB800A": (REQUEST, "RoCE does not get an answer in time"),
    "80BD8000": (REQUEST, "the network controller of the chip failed"),
    "80BD8008": (RESTART, "uncorrectable error in the network controller of the chip"),
    "80BD8009": (REQUEST, "bus error at the network controller of the chip"),
    # security module
    "80E44E00": (RESTART, "the security module of the chip has no heartbeat"),
    "80E58E02": (RESTART, "the cryptographic unit of the security module is broken"),
    "80E58E03": (RESTART, "the key management of the security module is broken"),
}
# Those of a chip's port to the network between hosts: its link, RoCE, and the network controller.
NETWORK = frozenset(code for code in CODES if code.startswith(("810786", "80BB8", "80BD8")))
