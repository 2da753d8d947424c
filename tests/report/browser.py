"""Headless Chromium for tests, which asks nothing of any network."""

import shutil
import time

import pytest

from tests import needs

ARGUMENTS = (
    "--headless=new",
    "--window-size=1280,900",
    "--no-sandbox",  # Chromium's sandbox refuses to be run by root
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)


def start(*, javascript=True):
    """Return a driver, or skip the test that asks for one."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip(needs.CHROMIUM)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ARGUMENTS:
        options.add_argument(argument)
    if not javascript:
        content = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", content)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=service.Service(driver))


def opened(driver, page):
    """Open a page and wait until its scripts are done."""
    driver.get(page.as_uri())
    wait(driver)


def wait(driver):
    """Wait until the scripts of the open page are done."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if driver.execute_script("return document.documentElement.dataset.ready") is not None:
            return
        time.sleep(0.05)
    pytest.fail(f"the page is not ready: {driver.get_log('browser')}")
