import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { printable } from "../text";

/** An element that is a stop for the keyboard while its content scrolls. */
export function useScrolling<E extends HTMLElement>() {
  const ref = useRef<E>(null);
  useLayoutEffect(() => {
    const el = ref.current;
    if (el) el.tabIndex = el.scrollHeight > el.clientHeight || el.scrollWidth > el.clientWidth ? 0 : -1;
  });
  return ref;
}

/** Text with line breaks. */
export function Pre({ children, class: name }: { children: ComponentChildren; class?: string }) {
  return (
    <pre ref={useScrolling<HTMLPreElement>()} class={name}>
      {children}
    </pre>
  );
}

/** An error with its text. The text may come from data, so it is shown as text only. */
export function ErrorBox({ title, text }: { title: string; text?: string }) {
  return (
    <div class="box bad" role="alert">
      <strong>{title}</strong>
      {text && <Pre>{printable(text)}</Pre>}
    </div>
  );
}

export function Loading() {
  return <p class="soft">Loading…</p>;
}
