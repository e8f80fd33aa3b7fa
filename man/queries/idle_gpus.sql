-- The share of the time between its first and last work in which a GPU had nothing to do, by
-- capture. Work that overlaps counts once: each piece of work adds what reaches beyond all the
-- work that began before it.
WITH work AS (
  SELECT filename, gpu, start_ns, end_ns,
         max(end_ns) OVER (PARTITION BY filename, gpu ORDER BY start_ns, end_ns
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until_ns
  FROM read_parquet('tables/*/work.parquet', filename = true)
  WHERE kind <> 'sync' AND is_timed = 1)
SELECT regexp_extract(filename, '([^/]*)/[^/]*$', 1) AS capture, gpu,
       max(end_ns) - min(start_ns) AS span_ns,
       sum(greatest(0, end_ns - greatest(start_ns, coalesce(busy_until_ns, start_ns)))) AS busy_ns,
       1 - busy_ns / span_ns AS idle_share
FROM work
GROUP BY filename, gpu
ORDER BY idle_share DESC, capture, gpu;
