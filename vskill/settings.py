"""Settings, read from environment variables with django-environ; the README has a table of all variables."""

from __future__ import annotations

import contextlib
import logging
import secrets
from pathlib import Path

import environ

from vskill import __version__

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env", overwrite=False)


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
DATA_DIR = Path(env.str("VSKILL_DATA_DIR", default=str(BASE_DIR / "data"))).resolve()
DATA_DIR.mkdir(parents=True, exist_ok=True)
HOST = env.str("HOST", default="127.0.0.1")
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound
PORT = env.int("PORT", default=8000)
DEMO = env.bool("DEMO", default=True)

VSKILL_VERSION = __version__
VSKILL_SOURCE_URL = env.str("VSKILL_SOURCE_URL", default="")

SECRET_KEY = env.str("VSKILL_SECRET_KEY", default="") or kept_secret(DATA_DIR / "secret_key")
DEBUG = env.bool("VSKILL_DEBUG", default=False)

# --- environments --------------------------------------------------------------------------------------------------
VSKILL_HOSTS = env.list(
    "VSKILL_HOSTS", default=["127.0.0.1", "localhost", "[::1]", *([HOST] if HOST not in _ANY_ADDRESS else [])]
)
VSKILL_PUBLIC_URL = env.str(
    "VSKILL_PUBLIC_URL", default=f"http://{'127.0.0.1' if HOST in _ANY_ADDRESS else HOST}:{PORT}"
).rstrip("/")
VSKILL_SOURCE_ROOTS = env.list("VSKILL_SOURCE_ROOTS", default=[])
VSKILL_ENVIRONMENTS: dict[str, dict[str, object]] = env.json(
    "VSKILL_ENVIRONMENTS",
    default={
        "default": {
            "hosts": VSKILL_HOSTS,
            "public_url": VSKILL_PUBLIC_URL,
            "policy": {"source_file_roots": [*VSKILL_SOURCE_ROOTS, str(DATA_DIR / "demo")]},
        }
    },
)
ALLOWED_HOSTS = sorted({str(host) for options in VSKILL_ENVIRONMENTS.values() for host in options.get("hosts", [])})  # type: ignore[attr-defined]  # JSON
CSRF_TRUSTED_ORIGINS = sorted(
    {str(options["public_url"]).rstrip("/") for options in VSKILL_ENVIRONMENTS.values() if options.get("public_url")}
)

# --- Django --------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "vskill.apps.VskillConfig",
    "vskill.kv.apps.KVConfig",
    "marketplace.apps.MarketplaceConfig",
    "submissions.apps.SubmissionsConfig",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "vskill.middleware.SecurityHeadersMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "vskill.middleware.DatabaseUnavailableMiddleware",
    "vskill.middleware.WorkerEnvMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
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
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = VSKILL_PUBLIC_URL.startswith("https://")
SECURE_REFERRER_POLICY = "same-origin"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1100

# --- databases -----------------------------------------------------------------------------------------------------
KV_READ_WORKERS = env.int("VSKILL_KV_READ_WORKERS", default=4)
KV_WRITE_WORKERS = env.int("VSKILL_KV_WRITE_WORKERS", default=4)
KV_READ_TIMEOUT = env.float("VSKILL_KV_READ_TIMEOUT", default=30.0)
DATABASE_POOL_SIZE = env.int("VSKILL_DATABASE_POOL_SIZE", default=16)


def _database(url: str) -> dict[str, object]:
    database: dict[str, object] = {**environ.Env.db_url_config(url), "CONN_MAX_AGE": 0}
    if database["ENGINE"] == "django.db.backends.sqlite3":
        database["OPTIONS"] = {
            # IMMEDIATE, because a transaction that first reads and then writes could otherwise not wait for the lock.
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            # FULL, because an accepted submission has to survive a power failure.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-16000;",
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
    "default": _database(env.str("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'vskill.sqlite3'}")),
    **{alias: _database(url) for alias, url in env.json("VSKILL_DATABASES", default={}).items()},
}
DATABASE_ROUTERS = ["vskill.db.WorkerEnvRouter"]

# --- queue and recovery (seconds) ----------------------------------------------------------------------------------
QUEUE_MAX_BATCH_SIZE = env.int("VSKILL_QUEUE_MAX_BATCH_SIZE", default=3)
QUEUE_MAX_CONCURRENCY = env.int("VSKILL_QUEUE_MAX_CONCURRENCY", default=10)
QUEUE_MAX_BATCH_WAIT = env.float("VSKILL_QUEUE_MAX_BATCH_WAIT", default=5.0)
QUEUE_POLL_INTERVAL = env.float("VSKILL_QUEUE_POLL_INTERVAL", default=1.0)
QUEUE_LEASE = env.float("VSKILL_QUEUE_LEASE", default=90.0)
QUEUE_HEARTBEAT = env.float("VSKILL_QUEUE_HEARTBEAT", default=15.0)
QUEUE_MESSAGE_LIMIT = env.float("VSKILL_QUEUE_MESSAGE_LIMIT", default=300.0)
QUEUE_SHUTDOWN_GRACE = env.float("VSKILL_QUEUE_SHUTDOWN_GRACE", default=25.0)
QUEUE_MAX_ERRORS = env.int("VSKILL_QUEUE_MAX_ERRORS", default=3)
QUEUE_MAX_CRASHES = env.int("VSKILL_QUEUE_MAX_CRASHES", default=3)
QUEUE_BACKOFF = env.list("VSKILL_QUEUE_BACKOFF", cast=float, default=[10.0, 60.0, 300.0])
STUCK_THRESHOLD_SECONDS = env.float("VSKILL_STUCK_THRESHOLD", default=300.0)
RECOVERY_INTERVAL = env.float("VSKILL_RECOVERY_INTERVAL", default=60.0)
RECOVERY_MAX_ATTEMPTS = env.int("VSKILL_RECOVERY_MAX_ATTEMPTS", default=3)

VSKILL_SCHEDULE = {"recover_stuck": RECOVERY_INTERVAL, "purge_expired": 3600.0, "clean_scratch": 3600.0}

# --- fetching and scanning -----------------------------------------------------------------------------------------
FETCH_SECONDS = env.float("VSKILL_FETCH_SECONDS", default=60.0)
FETCH_PROCESSES = env.int("VSKILL_FETCH_PROCESSES", default=4)
SCAN_PROCESSES = env.int("VSKILL_SCAN_PROCESSES", default=2)


def _not_a_health_check(record: logging.LogRecord) -> bool:
    """Return whether a log record is not about /healthz, whose 503 answers would fill the log during a start."""
    return getattr(getattr(record, "request", None), "path", "") != "/healthz"


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"health": {"()": "django.utils.log.CallbackFilter", "callback": _not_a_health_check}},
    "formatters": {"line": {"format": "{asctime} {levelname:7} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["health"]}},
    "root": {"handlers": ["stderr"], "level": env.str("VSKILL_LOG_LEVEL", default="INFO")},
}
