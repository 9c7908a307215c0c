// Where the browsers are, and how the tests start them. The Playwright tests import it; the shell
// scripts run it: `browser.mjs chromium` prints a path, `browser.mjs webdriver chrome` prints the
// capabilities that wasm-bindgen-test-runner hands to the driver.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Chromium's flags: no window, no talk on the network, WebGPU on the processor. */
export const flags = [
  "--headless=new",
  "--no-sandbox", // Chromium as root, as in most CI, has none
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-quic",
  "--disable-sync",
  "--enable-unsafe-webgpu", // or software adapters are refused
  "--enable-unsafe-swiftshader",
  "--use-webgpu-adapter=swiftshader", // the same adapter on every machine
];

// An environment variable of the given name comes first, then the PATH, then macOS's places.
const programs = {
  chromium: {
    variable: "CHROME",
    names: ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"],
    places: [
      "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
      "/Applications/Chromium.app/Contents/MacOS/Chromium",
    ],
  },
  chromedriver: { variable: "CHROMEDRIVER", names: ["chromedriver"], places: [] },
  firefox: {
    variable: "FIREFOX",
    names: ["firefox", "firefox-esr"],
    places: ["/Applications/Firefox.app/Contents/MacOS/firefox"],
  },
  geckodriver: { variable: "GECKODRIVER", names: ["geckodriver"], places: [] },
};

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The path of one of the programs above; throws when it is not on this machine. */
export function find(name) {
  const { variable, names, places } = programs[name];
  const folders = (process.env.PATH ?? "").split(delimiter);
  const candidates = [
    process.env[variable],
    ...names.flatMap((file) => folders.map((folder) => join(folder, file))),
    ...places,
  ];
  const path = candidates.find((candidate) => candidate && isExecutable(candidate));
  if (!path)
    throw new Error(`${name} not found; scripts/setup.sh test installs it or says why not`);
  return path;
}

export const chromiumPath = () => find("chromium");
export const firefoxPath = () => find("firefox");

function webdriver(browser) {
  if (browser === "chrome") {
    return { "goog:chromeOptions": { binary: chromiumPath(), args: flags } };
  }
  return {
    "moz:firefoxOptions": {
      binary: firefoxPath(),
      args: ["-headless"],
      // Software adapters are on Firefox's block list.
      prefs: { "dom.webgpu.enabled": true, "gfx.webgpu.ignore-blocklist": true },
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, browser] = process.argv.slice(2);
  try {
    console.log(name === "webdriver" ? JSON.stringify(webdriver(browser)) : find(name));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
