// Receives the statements of a prompt without a node.
import { defineTransform } from "weir";

export default defineTransform({
  metrics() {},
  logs() {},
});
