-- How far places outside the database have followed its erasures.

-- name: erasure_mark
SELECT epoch FROM erasure_marks WHERE place = :name

-- name: erasure_mark_begin
INSERT INTO erasure_marks (place, epoch) VALUES (:name, (SELECT coalesce(max(epoch), 0) FROM scope_epochs))
ON CONFLICT DO NOTHING

-- name: erasures_owed
SELECT m.epoch, s.scope, s.epoch FROM erasure_marks AS m LEFT JOIN scope_epochs AS s ON s.epoch > m.epoch
WHERE m.place = :name

-- name: erasure_mark_done
-- Not where the mark moved meanwhile: something was put there after the erasure.
UPDATE erasure_marks SET epoch = :through WHERE place = :name AND epoch = :epoch

-- name: erasure_mark_redo
UPDATE erasure_marks SET epoch = :epoch WHERE place = :name AND epoch > :epoch

-- name: erasure_marks
SELECT m.place, count(s.scope) FROM erasure_marks AS m LEFT JOIN scope_epochs AS s ON s.epoch > m.epoch
GROUP BY m.place ORDER BY m.place
