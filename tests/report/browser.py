"""A headless Chromium for tests, or a visible reason why there is none."""

import shutil
import time

import pytest


def start():
    """Return a driver, or skip the test that asks for one."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium and chromedriver to open the page with")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=service.Service(driver))


def opened(driver, page):
    """Open a page and wait until its scripts are done."""
    driver.get(page.as_uri())
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if driver.execute_script("return document.documentElement.dataset.ready") is not None:
            return
        time.sleep(0.05)
    pytest.fail(f"the page is not ready: {driver.get_log('browser')}")
