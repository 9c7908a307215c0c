// Texts as numbers: one class for each character.

/** More classes than this make the model slow to start; rarer characters then share one. */
const MAX_CLASSES = 128;
const OTHER = "\ufffd";

export class Vocabulary {
  #numbers;

  /** @param {string} text whose characters it is to hold */
  constructor(text) {
    const counts = new Map();
    for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
    let characters = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
    if (characters.length > MAX_CLASSES) {
      const kept = characters.filter((character) => character !== OTHER);
      characters = [...kept.slice(0, MAX_CLASSES - 1), OTHER];
    }
    this.characters = characters;
    this.#numbers = new Map(characters.map((character, number) => [character, number]));
  }

  get size() {
    return this.characters.length;
  }

  encode(text) {
    const other = this.#numbers.get(OTHER) ?? 0;
    return Uint32Array.from(text, (character) => this.#numbers.get(character) ?? other);
  }
}

/**
 * Windows of the text at random places.
 * @param {Uint32Array} text
 * @returns {{ tokens: Uint32Array, targets: Uint32Array }} [batch·context] each; a target is the
 *   token that follows
 */
export function randomBatch(random, text, batch, context) {
  const tokens = new Uint32Array(batch * context);
  const targets = new Uint32Array(batch * context);
  for (let row = 0; row < tokens.length; row += context) {
    const start = Math.floor(random() * (text.length - context));
    tokens.set(text.subarray(start, start + context), row);
    targets.set(text.subarray(start + 1, start + 1 + context), row);
  }
  return { tokens, targets };
}
