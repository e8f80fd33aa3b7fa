-- Kernels whose mean time differs between two sets of captures, in the directories before/ and
-- after/. The unit is the capture: its mean, not each execution, so that one slow run does not
-- look like a certain change. `z` is Welch's statistic: beyond 3 the change is hardly chance, if
-- each set has some ten captures; each set needs two.
WITH means AS (
  SELECT filename LIKE '%after/%' AS is_after, filename, name, avg(duration_ns) AS mean_ns
  FROM read_parquet(['before/*/work.parquet', 'after/*/work.parquet'], filename = true)
  WHERE kind = 'kernel'
  GROUP BY filename, name),
sets AS (
  SELECT name,
         count(*) FILTER (WHERE NOT is_after) AS captures_before,
         count(*) FILTER (WHERE is_after) AS captures_after,
         avg(mean_ns) FILTER (WHERE NOT is_after) AS before_ns,
         avg(mean_ns) FILTER (WHERE is_after) AS after_ns,
         var_samp(mean_ns) FILTER (WHERE NOT is_after) AS before_var,
         var_samp(mean_ns) FILTER (WHERE is_after) AS after_var
  FROM means
  GROUP BY name)
SELECT name, captures_before, captures_after, before_ns, after_ns, after_ns / before_ns AS ratio,
       (after_ns - before_ns) /
         sqrt(before_var / captures_before + after_var / captures_after) AS z
FROM sets
WHERE captures_before >= 2 AND captures_after >= 2 AND before_var + after_var > 0
ORDER BY z DESC, name;
