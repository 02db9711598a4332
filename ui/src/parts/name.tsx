// Names of nodes, paths and addresses. They break after punctuation, and within a word only where
// nothing else fits.

import { Fragment } from "preact";
import { nodeLink } from "../route";
import { printable } from "../text";

export function Name({ text, limit = 300 }: { text: string; limit?: number }) {
  return (
    <span class="name">
      {printable(text, limit)
        .split(/(?<=[./:_?&=,@])/)
        .map((part, i) => (
          <Fragment key={i}>
            {i > 0 && <wbr />}
            {part}
          </Fragment>
        ))}
    </span>
  );
}

export function NodeLink({ id }: { id: string }) {
  return (
    <a href={nodeLink(id)}>
      <Name text={id} />
    </a>
  );
}
