// What people paste to find a record or a target, as an expression.

const matcher = /^\s*([A-Za-z_]\w*|"(?:[^"\\]|\\.)*")\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|`[^`]*`)\s*(?:,|$)/;
const label = /^[A-Za-z_]\w*$/;

/** The text of a string in PromQL or LogQL. */
function unquoted(s: string): string {
  const inner = s.slice(1, -1);
  if (s.startsWith("`")) return inner;
  try {
    return JSON.parse(s) as string;
  } catch {
    return inner.replace(/\\(.)/g, "$1"); // an escape that JSON does not have
  }
}

const field = (name: string) =>
  name === "__name__" ? "name" : label.test(name) ? `labels.${name}` : `labels[${JSON.stringify(name)}]`;

/** The terms for the matchers between the braces of a selector. */
function terms(text: string): string[] | undefined {
  const out: string[] = [];
  for (let rest = text.trim(); rest !== ""; ) {
    const found = matcher.exec(rest);
    if (!found) return undefined;
    const [whole, quoted = "", op, value = ""] = found;
    const name = quoted.startsWith('"') ? unquoted(quoted) : quoted;
    const regex = JSON.stringify(`^(?:${unquoted(value)})$`);
    if (op === "=~") out.push(`${field(name)} matches ${regex}`);
    else if (op === "!~") out.push(`!(${field(name)} matches ${regex})`);
    else out.push(`${field(name)} ${op === "=" ? "==" : "!="} ${JSON.stringify(unquoted(value))}`);
    rest = rest.slice(whole.length).trim();
  }
  return out;
}

/** The braces of a selector with what is before and after them. Braces in strings do not count. */
const braces = /^([A-Za-z_:][\w:]*)?\s*\{((?:[^"`{}]|"(?:[^"\\]|\\.)*"|`[^`]*`)*)\}\s*(.*)$/s;
const number = /^[-+]?(?:[\d.]+(?:e[-+]?\d+)?|Inf|NaN)(?:\s+-?\d+)?$/i;

/**
 * The expression for a series, a selector or a log line with its labels, such as up{job="api"} 1, or for
 * the address or the URL of a target. Another text is an expression already.
 */
export function expressionOf(typed: string, targets: boolean): string {
  const text = typed.trim();
  if (targets) {
    const address = /^(?:https?:\/\/)?([\w.-]+:\d+|\[[\da-f:]+\]:\d+)(?:\/\S*)?$/i.exec(text)?.[1];
    if (address) return `labels.__address__ == ${JSON.stringify(address)}`;
  }
  if (!targets && /^[A-Za-z_:][\w:]*(\s+\S+)?$/.test(text) && !/^(true|false)$/.test(text)) {
    const [name, value] = text.split(/\s+/);
    if (value === undefined || number.test(value)) return `name == ${JSON.stringify(name)}`;
  }
  const found = braces.exec(text);
  if (!found) return text;
  const [, name, inside = "", after = ""] = found;
  const of = terms(inside);
  if (!of) return text;
  if (name) of.unshift(`name == ${JSON.stringify(name)}`);
  if (after !== "" && !number.test(after)) {
    if (name || targets) return text;
    of.push(`line == ${JSON.stringify(after.replace(/^@\S+ /, ""))}`); // without the time
  }
  return of.join(" && ") || text;
}
