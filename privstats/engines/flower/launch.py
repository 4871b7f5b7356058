"""``join`` and ``serve``: Flower's node and Flower's SuperLink as children, started so that only our code runs in them.

Supervision only: what they start by name is in ``pinned``, what is said in a session elsewhere. A child that goes down
with this process; a node that is refused is started again.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from privstats.engines.flower import pinned
from privstats.engines.flower.client_app import ...
