// What the editor completes: names that scripts use, and arguments of blocks.

import type { Completion, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import type { Name } from "../api";

const option = (n: Name): Completion => ({
  label: n.name,
  detail: n.call === n.name ? undefined : n.call,
  info: n.doc || undefined,
  type: n.function ? "function" : n.block ? "class" : "property",
});

const unique = (names: Name[]) => [...new Map(names.map((n) => [n.name, n])).values()];

/** The types that common variables have. */
const variables = new Map([
  ["batch", ["batch", "logs"]],
  ["s", ["series", "stream"]],
  ["ctx", ["ctx", "series_ctx"]],
  ["group", ["group", "line_group"]],
  ["copy", ["copy", "line_copy"]],
]);
/** The types that other variables may have. */
const records = ["batch", "logs", "record", "line", "series", "stream"];

export function completeScript(names: Name[]): CompletionSource {
  const owners = new Set(names.map((n) => n.of));
  return (context: CompletionContext): CompletionResult | null => {
    const member = context.matchBefore(/[\w.]+[.:]\w*$/);
    if (member) {
      const at = Math.max(member.text.lastIndexOf("."), member.text.lastIndexOf(":"));
      const path = member.text.slice(0, at);
      const last = path.slice(path.lastIndexOf(".") + 1);
      const types =
        variables.get(path) ??
        (owners.has(path) ? [path] : last === "labels" ? [] : path.startsWith("ctx.") ? [] : records);
      return {
        from: member.from + at + 1,
        options: unique(names.filter((n) => types.includes(n.of))).map(option),
        validFor: /^\w*$/,
      };
    }
    const word = context.matchBefore(/\w+$/);
    if (!word && !context.explicit) return null;
    return {
      from: word ? word.from : context.pos,
      options: names.filter((n) => n.of === "").map(option),
      validFor: /^\w*$/,
    };
  };
}

export function completeBlock(names: Name[]): CompletionSource {
  const blocks = new Set(names.filter((n) => n.block).map((n) => (n.of ? `${n.of}.${n.name}` : n.name)));
  return (context: CompletionContext): CompletionResult | null => {
    const line = context.state.doc.lineAt(context.pos);
    const begin = /^\s*([\w.]*)$/.exec(line.text.slice(0, context.pos - line.from));
    if (!begin || (!begin[1] && !context.explicit)) return null;
    const from = context.pos - (begin[1] ?? "").length;
    const outer = enclosing(context.state.sliceDoc(0, from));
    if (outer.length === 0) return null;
    // Stages of stage.match are described at the top.
    let of = "";
    for (const name of outer.slice(1)) of = blocks.has(`${of}.${name}`) ? `${of}.${name}` : name;
    const nested = blocks.has(`${of}.stage.*`);
    const fits = (n: Name) =>
      !n.name.endsWith("*") && (n.of === of || (nested && n.of === "" && n.name.startsWith("stage.")));
    return {
      from,
      options: names.filter(fits).map((n) => ({ ...option(n), apply: n.block ? `${n.name} {` : `${n.name} = ` })),
      validFor: /^[\w.]*$/,
    };
  };
}

/** The names of the blocks around the end of a text, the outermost first. */
function enclosing(text: string): string[] {
  const open: string[] = [];
  const tokens = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|`[^`]*`|([\w.]+)\s*(?:"[^"\n]*"\s*)?\{|[{}]/g;
  for (const m of text.matchAll(tokens)) {
    if (m[0] === "}") open.pop();
    else if (m[0].endsWith("{") && !m[0].startsWith("/") && !m[0].startsWith('"')) open.push(m[1] ?? "");
  }
  return open;
}
