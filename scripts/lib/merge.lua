-- Sums the records of a batch that have become the same series.
--
-- Folding labels makes several series of one target identical. Without a sum, the
-- receiver would reject all but one of the samples as duplicates.
local merge = {}

-- rows merges records by their numbers. Values of the same series and time are
-- added, which is right for counters and for the buckets of histograms. A series
-- that is folded ends when all that is in it has ended. Native histograms stay as
-- they are.
function merge.rows(batch, rows)
  local first = {}
  for _, i in ipairs(rows) do
    local r = batch[i]
    local value = r.value
    if value then
      local key = r.name .. "\0" .. r.time .. tostring(r.labels)
      local f = first[key]
      if not f then
        first[key] = { row = i, sum = value, stale = r.stale }
      elseif r.stale then
        batch:drop(i)
      elseif f.stale then -- it goes on in this record
        batch:drop(f.row)
        first[key] = { row = i, sum = value, stale = false }
      else
        f.sum = f.sum + value
        batch:set(f.row, "value", f.sum)
        batch:drop(i)
      end
    end
  end
end

return merge
