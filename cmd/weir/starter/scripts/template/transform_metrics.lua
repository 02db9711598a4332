-- Adds the label `region` to all series and drops metrics that nobody needs.
--
--   template.transform_metrics "default" {
--   	region     = "eu"
--   	forward_to = [prometheus.remote_write.default.receiver]
--   }
--
-- Example Args:
--   region = "eu"
-- Example Input:
--   # TYPE http_requests_total counter
--   http_requests_total{job="api"} 1
--   # TYPE go_goroutines gauge
--   go_goroutines{job="api"} 12
-- Example Output:
--   # TYPE http_requests_total counter
--   http_requests_total{job="api",region="eu"} 1
local weir = require "weir"

-- This component is an example. To write your own:
--
-- 1. Change the comment at the top of the file. It is the manual, and the example in
--    it is a test: write the input that you have and the output that you want.
-- 2. Run 'weir test --watch' and change the code until the tests pass.
-- 3. Change the test file in the same way.
--
-- 'weir help scripts' lists everything that a script can use.
return weir.transform {
  args = {
    region = weir.arg.string { doc = "Value of the label region." },
    drop = weir.arg.string { default = "^go_", doc = "Names of the metrics to drop, a regular expression." },
  },

  -- Called once per new series. weir caches the result, so use only labels and arguments.
  series = function(s, ctx)
    s.labels.region = ctx.args.region
  end,

  -- Called once per batch, for example once per scrape of a target.
  metrics = function(batch)
    batch:drop_where [[ name matches args.drop ]]
  end,
}
