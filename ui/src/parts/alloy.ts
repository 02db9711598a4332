// The colours of the config language, which is Alloy's.

import { StreamLanguage } from "@codemirror/language";

interface State {
  /** The end of the string or comment that goes on in the next line. */
  until: string;
}

export const alloy = StreamLanguage.define<State>({
  name: "alloy",
  startState: () => ({ until: "" }),
  token(stream, state) {
    if (state.until) {
      const kind = state.until === "`" ? "string" : "comment";
      if (stream.skipTo(state.until)) {
        stream.match(state.until);
        state.until = "";
      } else stream.skipToEnd();
      return kind;
    }
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.until = "*/";
      return "comment";
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.eat("`")) {
      state.until = "`";
      return "string";
    }
    if (stream.match(/^\d[\w.]*/)) return "number";
    if (stream.match(/^(?:true|false|null)\b/)) return "atom";
    // The name of a block begins its line.
    const first = stream.string.slice(0, stream.pos).trim() === "";
    if (first && stream.match(/^[A-Za-z_][\w.]*(?=\s*(?:"[^"]*"\s*)?\{)/)) return "keyword";
    if (stream.match(/^[A-Za-z_]\w*/)) return null;
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } } },
});
