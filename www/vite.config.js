import { fileURLToPath } from "node:url";

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));

export default {
  // The built page works in any folder of any web server.
  base: "./",
  // The demo uses wgrad as everyone does; here it comes from this repository.
  resolve: { alias: { wgrad: folder("../pkg/wgrad.js") } },
  worker: { format: "es" },
  build: { target: "esnext", chunkSizeWarningLimit: 1000 },
  server: { fs: { allow: [folder("..")] } },
};
