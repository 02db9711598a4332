// The difference of two texts by lines.

import { Pre } from "../parts/message";

interface Line {
  kind: "same" | "removed" | "added";
  text: string;
}

const mostCells = 4_000_000;

/** The lines of both texts, by a longest common subsequence. Texts that are too long are shown as a whole. */
export function diffLines(before: string, after: string): Line[] {
  const a = before.split("\n");
  const b = after.split("\n");
  if (a.length * b.length > mostCells) {
    return [
      ...a.map((text) => ({ kind: "removed", text }) as const),
      ...b.map((text) => ({ kind: "added", text }) as const),
    ];
  }
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const out: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ kind: "same", text: a[i] ?? "" });
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) {
      out.push({ kind: "removed", text: a[i++] ?? "" });
    } else {
      out.push({ kind: "added", text: b[j++] ?? "" });
    }
  }
  return out;
}

const marks = { same: " ", removed: "−", added: "+" };

/** Changed lines with three lines around them. */
export function Diff({ name, before, after }: { name: string; before: string; after: string }) {
  const all = diffLines(before, after);
  const near = all.map((_, i) => all.slice(Math.max(0, i - 3), i + 4).some((l) => l.kind !== "same"));
  return (
    <figure class="diff">
      <figcaption>{name}</figcaption>
      <Pre>
        {all.map((l, i) =>
          near[i] ? (
            <div key={i} class={l.kind}>
              {marks[l.kind]} {l.text}
            </div>
          ) : near[i - 1] ? (
            <div key={i} class="soft">
              …
            </div>
          ) : null,
        )}
      </Pre>
    </figure>
  );
}
