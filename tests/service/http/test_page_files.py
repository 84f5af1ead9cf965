"""What goes out with the page: its files, their headers, and nothing from elsewhere."""

import re

import httpx
import pytest

PATHS = ["/", "/docs", "/assets/style.css", "/assets/page.js", "/assets/docs.js", "/assets/icon.svg"]


@pytest.mark.parametrize("path", PATHS)
def test_file_comes_with_its_type_and_a_strict_policy(server, path):
    answer = httpx.get(server.url + path)
    assert answer.status_code == 200
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert (policy["script-src"], policy["style-src"], policy["connect-src"]) == ("'self'",) * 3
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    kinds = {"": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    assert answer.headers["Content-Type"].startswith(kinds[path.partition(".")[2]])


@pytest.mark.parametrize("path", PATHS)
def test_file_names_no_other_host_and_has_nothing_inline(server, path):
    text = httpx.get(server.url + path).text
    foreign = [url for url in re.findall(r"(?:https?:)?//[a-z][\w.-]+\.\w+\S*", text) if "w3.org/2000/svg" not in url]
    assert foreign == []
    if path in ("/", "/docs"):
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


def test_file_that_the_browser_has_is_not_sent_again(server):
    first = httpx.get(server.url)
    again = httpx.get(server.url, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert httpx.get(server.url, headers={"If-None-Match": '"other"'}).content == first.content


@pytest.mark.parametrize("path", ["/assets/", "/assets/nothing.js", "/assets/../app.py", "/assets/%2e%2e/app.py"])
def test_nothing_else_of_the_package_can_be_fetched(server, path):
    assert httpx.get(server.url + path).status_code == 404
