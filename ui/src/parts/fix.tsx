import type { Fix } from "../problems";
import { printable } from "../text";

/** What to do about a problem, with links. */
export function WhatToDo({ of }: { of: Fix }) {
  return (
    <p>
      {printable(of.fix)}{" "}
      {of.links.map((l) => (
        <span key={l.href}>
          {" "}
          <a href={l.href}>{l.title}</a>
        </span>
      ))}
    </p>
  );
}
