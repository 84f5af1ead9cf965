"""The page and the reference in a real browser: every way to hand over a photo, and nothing that leaves the server."""

import base64
import re

import httpx
import pytest

from support.browser import chromium, visit
from support.images import jpeg

pytestmark = pytest.mark.system

DESKTOP = {"width": 1180, "height": 900}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def at(server, browser):
    """Opens the page, and at the end holds it to its promises: no complaint, no request to anybody else."""
    opened = []

    def open_page(path="/", **options):
        context = visit(browser, **{"viewport": DESKTOP, **options})
        visited = context.__enter__()
        opened.append((context, visited))
        visited.page.goto(server.url + path)
        return visited.page

    yield open_page
    for context, visited in opened:
        assert visited.strangers(server.url) == []
        assert visited.complaints == []
        context.__exit__(None, None, None)


@pytest.fixture(scope="module")
def cat(tmp_path_factory):
    file = tmp_path_factory.mktemp("photos") / "cat.jpg"
    file.write_bytes(jpeg())
    return file


def assert_cat(page):
    page.get_by_role("list").get_by_text("tiger cat").wait_for()
    assert re.match(
        r"Looks like tiger cat, 3\d %\. \d+(\.\d)? ms in the server\.", page.get_by_role("status").inner_text()
    )


def hand_over(page, event, data, kind="image/jpeg"):
    """Dispatch a drop or a paste that carries a file, as the browser would for a person."""
    page.evaluate(
        """([event, data, type]) => {
            const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], "cat.jpg", { type }));
            const options = { bubbles: true, cancelable: true };
            document.getElementById("drop").dispatchEvent(event === "paste"
                ? new ClipboardEvent(event, { ...options, clipboardData: transfer })
                : new DragEvent(event, { ...options, dataTransfer: transfer }));
        }""",
        [event, base64.b64encode(data).decode(), kind],
    )


def test_picked_photo_gets_its_labels_its_times_and_its_model(server, at, cat):
    page = at()
    page.get_by_label("Choose a photo").set_input_files(cat)
    assert_cat(page)
    assert page.get_by_role("img", name="The photo to classify: cat.jpg").is_visible()
    widths = [float(bar.evaluate("bar => bar.style.width.slice(0, -1)")) for bar in page.locator(".fill").all()]
    assert widths == sorted(widths, reverse=True)
    assert len(widths) == 5
    stages = page.locator("#times th").all_inner_texts()
    assert stages == [
        "Receive", "Wait for a worker", "Decode", "Resize", "Model", "Rank", "Respond", "Network and browser",
    ]  # fmt: skip
    parts = [float(text) for text in page.locator("#times td").all_inner_texts()]
    together = float(page.locator("#total td").inner_text())
    assert sum(parts) == pytest.approx(together, abs=0.5 * len(parts))  # each is rounded
    assert page.locator("#stages div").count() == len(parts)
    told = httpx.get(f"{server.url}/v1/model").json()
    model = page.locator("#model").inner_text()
    assert all(told[fact] in model for fact in ("name", "precision", "digest"))


def test_dropped_photo_is_classified(at):
    page = at()
    hand_over(page, "dragenter", jpeg())
    assert page.get_by_text("Let go to classify").is_visible()
    hand_over(page, "drop", jpeg())
    assert_cat(page)
    assert not page.get_by_text("Let go to classify").is_visible()


def test_pasted_photo_is_classified(at):
    page = at()
    hand_over(page, "paste", jpeg())
    assert_cat(page)


def test_keyboard_alone_is_enough(at, cat):
    page = at()
    # Choosers are caught from the first listener on, but not at once: a key that is quicker opens a dialog for nobody.
    page.on("filechooser", lambda _: None)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the photo"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "pick"
    ring = page.locator("label[for=pick]").evaluate("label => getComputedStyle(label).outlineStyle")
    assert ring == "solid"
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(cat)
    assert_cat(page)
    assert page.evaluate("document.activeElement.id") == "pick"  # ready for the next one


def test_refusal_is_told_in_words(at, tmp_path):
    (tmp_path / "notes.txt").write_text("no photo")
    page = at()
    page.get_by_label("Choose a photo").set_input_files(tmp_path / "notes.txt")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "Unsupported Media Type" in alert.inner_text()
    assert "Expected an image in one of JPEG" in alert.inner_text()
    assert page.get_by_role("status").inner_text() == "No answer for this photo."
    hand_over(page, "drop", jpeg())
    assert_cat(page)
    assert not alert.is_visible()


def test_server_that_is_gone_is_told_in_words(at, cat):
    page = at()
    page.locator("#model code").wait_for()
    page.context.set_offline(True)
    page.get_by_label("Choose a photo").set_input_files(cat)
    page.get_by_role("alert").wait_for()
    assert "The server does not answer" in page.get_by_role("alert").inner_text()


def test_phone_has_room_and_a_camera(at, cat):
    page = at(**PHONE)
    camera = page.get_by_label("Take a photo")
    assert camera.get_attribute("capture") == "environment"
    assert page.get_by_text("Take a photo").is_visible()
    camera.set_input_files(cat)
    assert_cat(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for target in (page.locator("label[for=pick]"), page.locator("label[for=capture]")):
        assert target.bounding_box()["height"] >= 44  # a fingertip


CONTRASTS = """() => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const light = (colour) => colour.slice(0, 3).map((c) => linear(c / 255))
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = (element) => {
        for (; element; element = element.parentElement) {
            const colour = parts(getComputedStyle(element).backgroundColor);
            if (colour.length < 4 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll("body *")].filter((element) => element.checkVisibility()
        && [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
    return texts.map((element) => {
        const [a, b] = [light(parts(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
        return [element.textContent.trim().slice(0, 30), (a + 0.05) / (b + 0.05)];
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(at, cat, tmp_path, scheme):
    (tmp_path / "notes.txt").write_text("no photo")
    page = at(color_scheme=scheme)
    page.get_by_label("Choose a photo").set_input_files(cat)
    assert_cat(page)
    seen = page.evaluate(CONTRASTS)
    page.get_by_label("Choose a photo").set_input_files(tmp_path / "notes.txt")
    page.get_by_role("alert").wait_for()
    seen += page.evaluate(CONTRASTS)
    assert len(seen) > 30
    assert [pair for pair in seen if pair[1] < 4.5] == []  # WCAG 2.2, 1.4.3
    brightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(brightness) > 3 * 128) == (scheme == "light")


def test_reference_shows_every_route_and_opens_by_keyboard(server, at):
    page = at("/docs")
    document = httpx.get(f"{server.url}/openapi.json").json()
    page.locator("#reference details").first.wait_for()
    shown = page.locator(".operation summary .method + code").all_inner_texts()
    assert sorted(shown) == sorted(path for path, methods in document["paths"].items() for _ in methods)
    summary = page.locator("summary", has_text="/v1/model")
    summary.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("cell", name="application/json ServedModel").is_visible()
    assert page.locator("#shape-Problem").count() == 1
