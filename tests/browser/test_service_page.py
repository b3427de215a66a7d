"""The page of a service in a browser: asked for with a token, and loaded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from service import started

import slotkern as sk


def test_the_page_of_a_service_follows_its_ledger(browser: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect  # there is one if there is a browser

    with started(tmp_path) as (address, tokens):
        url = "http://{}:{}/v1/page".format(*address)
        known = {"username": "rob", "password": tokens["rob"]}
        context = browser.new_context(http_credentials=known)
        page = context.new_page()
        assert page.goto(url).status == 200
        expect(page).to_have_title("version 0")
        with sk.SlotPool.open(tmp_path / "site.db") as pool:
            pool.place(sk.Request(2, 4, name="ocean"), owner="ann")
        expect(page).to_have_title("version 1", timeout=60_000)
        context.close()
