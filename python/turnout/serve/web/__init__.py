"""The server of a collection (extra ``serve``): its requests, its limits, and its process."""

from turnout._extras import require

require("starlette", "serve")
require("uvicorn", "serve")
require("httptools", "serve")
