/**
 * Sets the label `level` from JSON lines and drops lines by their level.
 *
 *   template.transform_logs "default" {
 *   	drop       = ["debug", "trace"]
 *   	forward_to = [loki.write.default.receiver]
 *   }
 *
 * Example Args:
 *   drop = ["debug"]
 * Example Input:
 *   {app="shop"} {"level":"info","msg":"order placed"}
 *   {app="shop"} {"level":"debug","msg":"cache hit"}
 *   {app="shop"} not JSON
 * Example Output:
 *   {app="shop",level="info"} {"level":"info","msg":"order placed"}
 *   {app="shop"} not JSON
 */
import { arg, defineTransform } from "weir";

// This component is an example. To write your own:
//
// 1. Change the comment at the top of the file. It is the manual, and the example in
//    it is a test: write the input that you have and the output that you want.
// 2. Run 'weir test --watch' and change the code until the tests pass.
// 3. Change the test file in the same way.
//
// 'weir help scripts' lists everything that a script can use.
export default defineTransform({
  args: {
    drop: arg.list({ of: arg.string(), default: ["debug"], doc: "Levels of the lines to drop." }),
  },

  // Called once per batch of lines.
  logs(batch) {
    batch.promote("json.level", "level");
    batch.dropWhere("labels.level in args.drop");
  },
});
