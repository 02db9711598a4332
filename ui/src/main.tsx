import { render } from "preact";
import { App } from "./app";
import { start } from "./status";
import { applyTheme } from "./theme";

applyTheme();
start();
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
