"""Item models over engine tables: lazily, without an object per row, sortable, filterable, copied as TSV."""
