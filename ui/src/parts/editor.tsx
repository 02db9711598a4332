// A code editor with the errors at their lines.

import { autocompletion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascriptLanguage, typescriptLanguage } from "@codemirror/lang-javascript";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  StreamLanguage,
  syntaxHighlighting,
} from "@codemirror/language";
import { lua } from "@codemirror/legacy-modes/mode/lua";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import type { Name } from "../api";
import { alloy } from "./alloy";
import { completeBlock, completeScript } from "./completion";

export interface LineError {
  /** Starts at 1; 0 or undefined for the first line. */
  line?: number;
  message: string;
}

// The colours are those of the theme.
const colors = HighlightStyle.define([
  { tag: tags.comment, color: "var(--soft)" },
  { tag: [tags.string, tags.regexp], color: "var(--good)" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--link)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--warn)" },
]);

const look = EditorView.theme({
  "&": {
    maxHeight: "60vh",
    border: "1px solid var(--edge)",
    borderRadius: "6px",
    background: "var(--card)",
    color: "var(--ink)",
    fontSize: "13px",
  },
  ".cm-scroller": { fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" },
  ".cm-gutters, .cm-tooltip": { background: "var(--code)", color: "var(--soft)", borderColor: "var(--line)" },
  ".cm-tooltip-autocomplete > ul > li": { color: "var(--ink)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--mark)", color: "var(--ink)" },
  ".cm-completionDetail": { fontStyle: "normal", color: "var(--soft)" },
  ".cm-activeLine": { background: "var(--code)" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--mark)" },
});

function languageOf(file: string) {
  if (file.endsWith(".alloy")) return alloy;
  if (file.endsWith(".lua")) return StreamLanguage.define(lua);
  return file.endsWith(".ts") ? typescriptLanguage : javascriptLanguage;
}

/** An editor that begins with a text. A new text needs another key. */
export function Editor(props: {
  file: string;
  text: string;
  label: string;
  errors: LineError[];
  /** What to complete. */
  names: Name[];
  onChange: (text: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(props.onChange);
  changed.current = props.onChange;
  useEffect(() => {
    if (!box.current) return;
    // In a shadow root, CodeMirror needs no style elements, which the policy of the page forbids.
    const root = box.current.shadowRoot ?? box.current.attachShadow({ mode: "open" });
    const v = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: props.text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          bracketMatching(),
          indentOnInput(),
          lintGutter(),
          EditorView.lineWrapping,
          look,
          languageOf(props.file),
          autocompletion({
            override: [props.file.endsWith(".alloy") ? completeBlock(props.names) : completeScript(props.names)],
            icons: false,
          }),
          syntaxHighlighting(colors),
          // Escape and then Tab leaves the editor: https://codemirror.net/examples/tab/
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
          // With a tabindex, the text is known as the stop for the keyboard that scrolls the editor.
          EditorView.contentAttributes.of({ "aria-label": props.label, tabindex: "0" }),
          EditorView.updateListener.of((u) => {
            if (u.docChanged) changed.current(u.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = v;
    return () => v.destroy();
  }, []);
  useEffect(() => {
    const v = view.current;
    if (!v) return;
    const found = props.errors.map((e): Diagnostic => {
      const line = v.state.doc.line(Math.min(Math.max(e.line ?? 1, 1), v.state.doc.lines));
      return { from: line.from, to: line.to, severity: "error", message: e.message };
    });
    v.dispatch(setDiagnostics(v.state, found));
  }, [props.errors]);
  return <div ref={box} class="editor" />;
}
