"""Django's settings, made from the variables that ``vskill.configuration`` declares."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from pathlib import Path

from vskill import __version__
from vskill.configuration import BASE_DIR as CHECKOUT
from vskill.configuration import load
from vskill.mail_variables import mail_server
from vskill.private_files import keep_private
from vskill.sign_in_variables import SIGN_IN_APPS, sign_in_settings
from vskill.source_variables import with_common_options
from vskill.variables import InvalidSettings

BASE_DIR: Path = CHECKOUT
_value = {name: setting.value for name, setting in load().items()}


def kept_secret(path: Path) -> str:
    """Return the secret that is stored in ``path``.

    It is generated on the first start, in a file that only its owner may read.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(secrets.token_urlsafe(50))
        # Linked only when complete, and not over the file of another process of the same start: all of them have to
        # sign with the same key.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text().strip()


# --- where things are ----------------------------------------------------------------------------------------------
DATA_DIR: Path = _value["VSKILL_DATA_DIR"]
try:
    DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
    keep_private(DATA_DIR, 0o700)
    if not os.access(DATA_DIR, os.W_OK | os.X_OK):
        raise PermissionError(13, os.strerror(13))
except OSError as error:
    raise InvalidSettings(
        f"VSKILL_DATA_DIR: {DATA_DIR} cannot be written ({error.strerror}). "
        "Name a directory of your own, or change the owner of this one."
    ) from error
HOST: str = _value["HOST"]
PORT: int = _value["PORT"]
DEMO: bool = _value["DEMO"]
VSKILL_VERSION = __version__
VSKILL_SOURCE_URL: str = _value["VSKILL_SOURCE_URL"]

SECRET_KEY: str = _value["VSKILL_SECRET_KEY"] or kept_secret(DATA_DIR / "secret_key")
DEBUG: bool = _value["VSKILL_DEBUG"]

# --- environments --------------------------------------------------------------------------------------------------
VSKILL_PUBLIC_URL: str = _value["VSKILL_PUBLIC_URL"]
VSKILL_ENVIRONMENTS: dict[str, dict[str, object]] = with_common_options(_value["VSKILL_ENVIRONMENTS"], _value)
ALLOWED_HOSTS = sorted({str(host) for options in VSKILL_ENVIRONMENTS.values() for host in options.get("hosts", [])})  # type: ignore[attr-defined]  # JSON
CSRF_TRUSTED_ORIGINS = sorted(
    {str(options["public_url"]).rstrip("/") for options in VSKILL_ENVIRONMENTS.values() if options.get("public_url")}
)

# --- clients -------------------------------------------------------------------------------------------------------
TRUSTED_PROXIES: list[str] = _value["VSKILL_TRUSTED_PROXIES"]
PROXY_HEADER: str = _value["VSKILL_PROXY_HEADER"]
# By kind of request; an empty text is no limit.
RATE_LIMITS: dict[str, str] = {
    kind: _value[f"VSKILL_LIMIT_{kind.upper()}"] for kind in ("submissions", "reads", "downloads", "logins", "uploads")
}

# --- Django --------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "vskill.apps.VskillConfig",
    "vskill.kv.apps.KVConfig",
    "vskill.rate_limits.apps.RateLimitsConfig",
    "vskill.access_tokens.apps.AccessTokensConfig",
    "marketplace.apps.MarketplaceConfig",
    "submissions.apps.SubmissionsConfig",
    "vskill.accounts.admin_app.RoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    *SIGN_IN_APPS,
    "servestatic",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "vskill.web.middleware.SecurityHeadersMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "vskill.web.middleware.DatabaseUnavailableMiddleware",
    "vskill.web.middleware.WorkerEnvMiddleware",
    "vskill.web.limited_clients.limit_clients",
    "vskill.web.query_strings.refuse_strange_queries",
    "vskill.web.bearer_tokens.know_bearers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "vskill.web.slashes.redirect_without_slash",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "vskill.web.access.ask_for_sign_in",
    "vskill.web.offered_methods.say_what_is_offered",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "vskill.urls"
ASGI_APPLICATION = "vskill.asgi.application"
WSGI_APPLICATION = "vskill.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "vskill" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "vskill" / "static"]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["vskill.accounts.backend.EnvironmentBackend"]
SOCIALACCOUNT_PROVIDERS: dict[str, object] = {}
globals().update(sign_in_settings(_value))
MAIL_FROM: str = _value["VSKILL_EMAIL_FROM"]
MAIL_SERVER: dict[str, object] = mail_server(_value["VSKILL_EMAIL_URL"])
SESSION_ENGINE = "vskill.accounts.sessions"
CSRF_FAILURE_VIEW = "vskill.web.forged_forms.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
# With one https address the whole installation is taken to be behind https: a cookie must not leave it in clear text.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = any(
    str(address).startswith("https://")
    for address in (VSKILL_PUBLIC_URL, *(options.get("public_url", "") for options in VSKILL_ENVIRONMENTS.values()))
)
SECURE_REFERRER_POLICY = "same-origin"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1100
# As many as a skill has, and one more, so that the answer can say what the limit is.
DATA_UPLOAD_MAX_NUMBER_FILES = 501

# --- databases -----------------------------------------------------------------------------------------------------
KV_READ_WORKERS: int = _value["VSKILL_KV_READ_WORKERS"]
KV_WRITE_WORKERS: int = _value["VSKILL_KV_WRITE_WORKERS"]
KV_READ_TIMEOUT: float = _value["VSKILL_KV_READ_TIMEOUT"]
VISITOR_SECONDS: float = _value["VSKILL_VISITOR_SECONDS"]
VISITOR_WAIT: float = _value["VSKILL_VISITOR_WAIT"]
PAGE_WORKERS: int = _value["VSKILL_PAGE_WORKERS"]
LIST_WORKERS: int = _value["VSKILL_LIST_WORKERS"]
DATABASE_POOL_SIZE: int = _value["VSKILL_DATABASE_POOL_SIZE"]


def _database(options: dict[str, object]) -> dict[str, object]:
    database: dict[str, object] = {**options, "CONN_MAX_AGE": 0}
    if database["ENGINE"] == "django.db.backends.sqlite3":
        database["OPTIONS"] = {
            # IMMEDIATE, because a transaction that first reads and then writes could otherwise not wait for the lock.
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            # FULL, because an accepted submission has to survive a power failure.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-16000; "
            # In memory, so that a temporary directory that cannot be written stops no query.
            "PRAGMA temp_store=MEMORY;",
        }
        # A file and not memory, so that threads and processes of the tests share it as in production.
        database["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    elif database["ENGINE"] == "django.db.backends.postgresql":
        # The driver takes longer to load than the rest of a command that runs on SQLite.
        from vskill.postgresql.pool import RECONNECT_SECONDS, connect_again  # noqa: PLC0415 - for this database only

        database["ENGINE"] = "vskill.postgresql"
        database["OPTIONS"] = {
            "pool": {
                "min_size": 0,
                "max_size": DATABASE_POOL_SIZE,
                # Seconds. Long enough for a server to restart; while it is down, every request waits this long for a
                # connection, on a few threads.
                "timeout": 10,
                "reconnect_timeout": RECONNECT_SECONDS,
                "reconnect_failed": connect_again,
            },
            # So that a network that drops packets does not block a thread for good.
            "connect_timeout": 5,
            "tcp_user_timeout": 20_000,
        }
    return database


DATABASES = {
    "default": _database(_value["DATABASE_URL"]),
    **{alias: _database(options) for alias, options in _value["VSKILL_DATABASES"].items()},
}
DATABASE_ROUTERS = ["vskill.db.WorkerEnvRouter"]

# --- queue and recovery (seconds) ----------------------------------------------------------------------------------
QUEUE_MAX_BATCH_SIZE: int = _value["VSKILL_QUEUE_MAX_BATCH_SIZE"]
QUEUE_MAX_CONCURRENCY: int = _value["VSKILL_QUEUE_MAX_CONCURRENCY"]
QUEUE_MAX_BATCH_WAIT: float = _value["VSKILL_QUEUE_MAX_BATCH_WAIT"]
QUEUE_POLL_INTERVAL: float = _value["VSKILL_QUEUE_POLL_INTERVAL"]
QUEUE_LEASE: float = _value["VSKILL_QUEUE_LEASE"]
QUEUE_HEARTBEAT: float = _value["VSKILL_QUEUE_HEARTBEAT"]
QUEUE_MESSAGE_LIMIT: float = _value["VSKILL_QUEUE_MESSAGE_LIMIT"]
QUEUE_SHUTDOWN_GRACE: float = _value["VSKILL_QUEUE_SHUTDOWN_GRACE"]
QUEUE_MAX_CRASHES: int = _value["VSKILL_QUEUE_MAX_CRASHES"]
QUEUE_BACKOFF: list[float] = _value["VSKILL_QUEUE_BACKOFF"]
# Each wait is followed by one more attempt.
QUEUE_MAX_ERRORS = len(QUEUE_BACKOFF) + 1
STUCK_THRESHOLD_SECONDS: float = _value["VSKILL_STUCK_THRESHOLD"]
RECOVERY_INTERVAL: float = _value["VSKILL_RECOVERY_INTERVAL"]
RECOVERY_MAX_ATTEMPTS: int = _value["VSKILL_RECOVERY_MAX_ATTEMPTS"]

VSKILL_SCHEDULE = {
    "recover_stuck": RECOVERY_INTERVAL,
    **dict.fromkeys(("external_scans", "rescan", "sign_published"), 60.0),
    # Its pace is its own; so often that what a webhook names does not wait.
    "poll_followed": 15.0,
    "deliver": 15.0,
    "check_repositories": 300.0,
    # Often and little at a time, because the commands run one after the other.
    "watch_references": 600.0,
    **dict.fromkeys(("purge_expired", "clean_scratch", "recount_downloads"), 3600.0),
}

# --- other engines -------------------------------------------------------------------------------------------------
ADVISER_URL: str = _value["VSKILL_ADVISER_URL"]
ADVISER_MODEL: str = _value["VSKILL_ADVISER_MODEL"]
ADVISER_KEY: str = _value["VSKILL_ADVISER_KEY"]
CISCO: str = _value["VSKILL_CISCO"] or str(BASE_DIR / ".engines" / "cisco" / "bin" / "skill-scanner")
SEMGREP: str = _value["VSKILL_SEMGREP"] or str(BASE_DIR / ".engines" / "semgrep" / "bin" / "semgrep")

# --- fetching and scanning -----------------------------------------------------------------------------------------
FETCH_SECONDS: float = _value["VSKILL_FETCH_SECONDS"]
FETCH_PROCESSES: int = _value["VSKILL_FETCH_PROCESSES"]
SCAN_PROCESSES: int = _value["VSKILL_SCAN_PROCESSES"]
FOLLOW_INTERVAL: float = _value["VSKILL_FOLLOW_INTERVAL"]
WATCH_INTERVAL: float = _value["VSKILL_WATCH_INTERVAL"]
WATCH_PAUSE: float = _value["VSKILL_WATCH_PAUSE"]
WATCH_LIMIT: int = _value["VSKILL_WATCH_LIMIT"]
WATCH_SECONDS: float = _value["VSKILL_WATCH_SECONDS"]


def _not_a_health_check(record: logging.LogRecord) -> bool:
    """Return whether a log record is not about /healthz, whose 503 answers would fill the log during a start."""
    return getattr(getattr(record, "request", None), "path", "") != "/healthz"


def _without_traceback(record: logging.LogRecord) -> bool:
    """Take the traceback off a record about a request that Django refused to read: anybody can send any number."""
    if record.name.startswith("django.security."):
        record.exc_info = None
    return True


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "health": {"()": "django.utils.log.CallbackFilter", "callback": _not_a_health_check},
        "refused requests": {"()": "django.utils.log.CallbackFilter", "callback": _without_traceback},
    },
    "formatters": {
        "line": {
            "class": "vskill.access_tokens.token_form.TokenlessFormatter",
            "format": "{asctime} {levelname:7} {name}: {message}",
            "style": "{",
        }
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["health", "refused requests"]}
    },
    # While PostgreSQL is away the pool warns at each attempt of each thread; what fails because of it is logged anyway.
    "loggers": {"psycopg.pool": {"level": "ERROR"}},
    "root": {"handlers": ["stderr"], "level": _value["VSKILL_LOG_LEVEL"]},
}
