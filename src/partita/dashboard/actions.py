"""Changes through the dashboard, with `--allow-actions` only: offsets, after a preview, and members of our own broker.

Every change is a POST of a form that carries the token of our pages. A reset applies exactly the plan that was shown.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from partita.admin.client import AsyncAdmin
from partita.admin.reset import Target
from partita.admin.results import OffsetMove, ResetPlan
from partita.dashboard.site import Page, Site
from partita.dashboard.words import slug, unslug
from partita.errors import KafkaError
from partita.wording import count

FORM_BYTES_MAX = 16_384
PLANS_MAX = 50
CONTROL_WITHIN_S = 10.0
MEMBER_VERBS = {"evict_member": "evict", "expire_session": "expire the session of"}
TARGETS: dict[str, Callable[[str], Target]] = {
    "earliest": lambda value: Target.earliest(),
    "latest": lambda value: Target.latest(),
    "offset": lambda value: Target.offset(int(value)),
    "shift": lambda value: Target.shift_by(int(value)),
    "datetime": Target.datetime,
    "duration": lambda value: Target.duration(value, time.time_ns() // 1_000_000),
}


@dataclass(frozen=True, slots=True)
class ResetPage:
    """The form, and under it the requested plan, the error, or the result."""

    group_id: str
    path: str
    target: str
    value: str
    moves: tuple[OffsetMove, ...]
    plan_id: str
    error: str
    done: str


class Actions:
    """The forms. `admin` gives the connected admin client; `control` is the address of our own broker's endpoint."""

    def __init__(
        self, site: Site, admin: Callable[[], AsyncAdmin], *, control: str | None = None, control_token: str = ""
    ) -> None:
        self._site = site
        self._admin = admin
        self._control = control
        self._control_token = control_token
        self._plans: dict[str, ResetPlan] = {}

    def routes(self) -> list[BaseRoute]:
        """The routes of all actions."""
        routes: list[BaseRoute] = [
            Route("/groups/{group}/reset", self._form, methods=["GET"]),
            Route("/groups/{group}/reset", self._preview, methods=["POST"]),
            Route("/groups/{group}/reset/apply", self._apply, methods=["POST"]),
        ]
        if self._control is not None:
            routes.append(Route("/groups/{group}/members/{verb}", self._member, methods=["POST"]))
        return routes

    async def _form(self, request: Request) -> Response:
        return self._show(request, _page(request))

    async def _preview(self, request: Request) -> Response:
        form = await self._checked(request)
        if isinstance(form, Response):
            return form
        target, value = form.get("target", ""), form.get("value", "").strip()
        shown = _page(request, target=target, value=value)
        try:
            if target not in TARGETS:
                raise ValueError("choose where the group shall go on")
            plan = await self._admin().plan_reset(shown.group_id, TARGETS[target](value))
        except (KafkaError, ValueError) as error:
            return self._show(request, _page(request, target=target, value=value, error=str(error)), 400)
        plan_id = secrets.token_urlsafe(12)
        self._plans[plan_id] = plan
        while len(self._plans) > PLANS_MAX:
            del self._plans[next(iter(self._plans))]
        return self._show(request, _page(request, target=target, value=value, plan=plan, plan_id=plan_id))

    async def _apply(self, request: Request) -> Response:
        form = await self._checked(request)
        if isinstance(form, Response):
            return form
        plan = self._plans.pop(form.get("plan", ""), None)
        if plan is None or plan.group_id != unslug(request.path_params["group"]):
            return self._show(request, _page(request, error="this plan was applied or forgotten; make a new one"), 409)
        try:
            await self._admin().apply_reset(plan)
        except KafkaError as error:
            return self._show(request, _page(request, error=str(error)), 409)
        moved = sum(move.before != move.after for move in plan.moves)
        return self._show(request, _page(request, plan=plan, done=f"Moved {count(moved, 'offset')}."))

    async def _member(self, request: Request) -> Response:
        form = await self._checked(request)
        if isinstance(form, Response):
            return form
        group, verb = unslug(request.path_params["group"]), request.path_params["verb"]
        if verb not in MEMBER_VERBS:
            return PlainTextResponse(f"no action {verb}\n", 404)
        try:
            await asyncio.to_thread(self._call, verb, {"group_id": group, "member": form.get("member", "")})
        except (OSError, ValueError) as error:
            return PlainTextResponse(f"the broker's control endpoint: {error}\n", 502)
        return RedirectResponse(f"{self._site.prefix}/groups/{slug(group)}", 303)

    def _call(self, verb: str, arguments: Mapping[str, str]) -> None:
        """Call a verb of the control endpoint. Raises OSError, or ValueError with the endpoint's own message."""
        headers = {"Authorization": f"Bearer {self._control_token}", "Content-Type": "application/json"}
        address = f"{(self._control or '').rstrip('/')}/control/{verb}"
        asked = urllib.request.Request(address, json.dumps(arguments).encode(), headers)
        try:
            with urllib.request.urlopen(asked, timeout=CONTROL_WITHIN_S) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            raise ValueError(error.read(500).decode(errors="replace").strip()) from error

    async def _checked(self, request: Request) -> dict[str, str] | Response:
        """Return the fields of a form sent from one of our pages; else the refusal."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/x-www-form-urlencoded":
            return PlainTextResponse("send a form\n", 415)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > FORM_BYTES_MAX:
                return PlainTextResponse("the form is too large\n", 413)
        form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        if not self._site.access.is_form_token(form.get("form_token", "")):
            return PlainTextResponse(
                "this form does not come from a page of this dashboard; load the page again\n", 403
            )
        return form

    def _show(self, request: Request, model: ResetPage, status: int = 200) -> Response:
        page = Page(f"Reset {model.group_id}", "reset.html", model)
        return HTMLResponse(self._site.html(page, request.url.path, None), status)


def _page(
    request: Request, *, target: str = "", value: str = "", plan: ResetPlan | None = None, plan_id: str = "",
    error: str = "", done: str = "",
) -> ResetPage:  # fmt: skip
    group = unslug(request.path_params["group"])
    moves = tuple(plan.moves) if plan is not None else ()
    return ResetPage(group, f"/groups/{slug(group)}", target, value, moves, plan_id, error, done)
