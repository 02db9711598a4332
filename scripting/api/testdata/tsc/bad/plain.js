// @ts-check
import { arg, defineTransform } from "weir";

export default defineTransform({
  args: { region: arg.string() },
  metrics(batch, ctx) {
    batch.dropWher("x"); // TS2551
    ctx.args.regoin; // TS2551
  },
});
