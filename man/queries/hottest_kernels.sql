-- The kernels that took the most time of the GPUs, over all captures.
SELECT work.name, count(*) AS executions, count(DISTINCT work.filename) AS captures,
       sum(duration_ns) AS total_ns, avg(duration_ns) AS mean_ns
FROM read_parquet('tables/*/work.parquet', filename = true) AS work
WHERE kind = 'kernel'
GROUP BY work.name
ORDER BY total_ns DESC, work.name;
