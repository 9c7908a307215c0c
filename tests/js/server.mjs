// Serves pkg/, the modules of this folder, and blank pages: what the tests' browser talks to.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

const types = {
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

// Without a favicon of its own the browser asks for one, and the 404 is an error on the console.
const blank = `<!doctype html><link rel="icon" href="data:," /><title>wgrad</title>`;

async function answer(path) {
  if (path === "/" || path.endsWith(".html")) return { type: "text/html", body: blank };
  const type = types[extname(path)];
  const known = path.startsWith("/pkg/") || path.startsWith("/tests/js/");
  if (!type || !known) return undefined;
  try {
    return { type, body: await readFile(join(root, normalize(path))) };
  } catch {
    return undefined;
  }
}

/** A server on a free port; `close()` ends it. */
export async function serve() {
  const server = createServer(async (request, response) => {
    const found = await answer(new URL(request.url, "http://localhost").pathname);
    if (!found) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": found.type, "cache-control": "no-store" });
    response.end(found.body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: server.address().port,
    close() {
      // The browser keeps its connections open, and the server would wait for them.
      server.closeAllConnections();
      server.close();
    },
  };
}
