// @ts-check
import { arg, defineTransform, state } from "weir";

export default defineTransform({
  args: { region: arg.string({ default: "eu" }) },
  state: { teams: state.map() },
  series(s, ctx) {
    s.labels.region = ctx.args.region;
  },
  metrics(batch, ctx) {
    batch.each((r) => {
      r.labels.team = ctx.state.teams.get(r.labels.job ?? "") ?? "nobody";
    });
  },
});
