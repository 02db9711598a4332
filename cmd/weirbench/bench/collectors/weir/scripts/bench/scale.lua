-- Scales three series in ten, as from bytes to megabytes.
--
-- Example Input:
--   app_cache_entries 3000000
--   up 1
-- Example Output:
--   app_cache_entries 3
--   up 1
local weir = require "weir"

return weir.transform {
  metrics = function(batch)
    batch:scale([[ name startsWith "http_response_size_bytes" || name == "app_cache_entries" ]], 1e-6)
  end,
}
