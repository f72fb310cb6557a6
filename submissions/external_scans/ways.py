"""How scanners are reached: at the addresses that an operator configured, through the proxy where there is one."""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import Final, Self

import urllib3

from submissions.source.fetching import source_policy
from submissions.source.proxies import Proxy
from vskill.environments import WorkerEnv

_TIMEOUT: Final = urllib3.Timeout(connect=5.0, read=10.0)


class Ways:
    """The connections to the scanners of an environment, which are closed when the block ends.

    ``source_ca_file`` of its policy counts beside the authorities of the system. A local address, and one in
    ``source_unproxied_hosts``, is asked directly.
    """

    def __init__(self, env: WorkerEnv) -> None:
        self._policy = source_policy(env)
        self._pools: dict[Proxy | None, urllib3.PoolManager] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for pool in self._pools.values():
            pool.clear()

    def to(self, url: str) -> urllib3.PoolManager:
        """Return what asks ``url``; raises OSError where the file of authorities cannot be read."""
        proxy = self._policy.proxy_for_service(url)
        if proxy not in self._pools:
            self._pools[proxy] = self._through(proxy)
        return self._pools[proxy]

    def _through(self, proxy: Proxy | None) -> urllib3.PoolManager:
        context = ssl.create_default_context()
        if self._policy.ca_file is not None:
            context.load_verify_locations(self._policy.ca_file)
        if proxy is None:
            return urllib3.PoolManager(timeout=_TIMEOUT, retries=False, ssl_context=context)
        return urllib3.ProxyManager(
            proxy.url,
            proxy_headers=urllib3.make_headers(proxy_basic_auth=proxy.login) if proxy.login else None,
            proxy_ssl_context=context,
            timeout=_TIMEOUT,
            retries=False,
            ssl_context=context,
        )
