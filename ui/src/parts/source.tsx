// The text of a file with numbered lines, and what is wrong with them below each.

import { printable } from "../text";
import { Pre } from "./message";

export interface Remark {
  line?: number;
  severity: string;
  text: string;
}

export function Source({ name, text, remarks = [] }: { name: string; text: string; remarks?: Remark[] }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <figure class="source">
      <figcaption>{printable(name)}</figcaption>
      <Pre>
        {lines.map((l, i) => (
          <div key={i}>
            <span class="number" aria-hidden="true">
              {i + 1}
            </span>
            {printable(l)}
            {remarks
              .filter((r) => r.line === i + 1)
              .map((r) => (
                <div key={r.text} class={r.severity}>
                  {r.severity}: {printable(r.text)}
                </div>
              ))}
          </div>
        ))}
      </Pre>
    </figure>
  );
}
