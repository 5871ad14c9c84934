{#-
  NULL where there is no such part, in both modes of Spark: dbt-spark's index raises in ANSI mode. The delimiter is text,
  of any length; a negative number counts from the end.
-#}
{%- macro tablestore__split_part(string_text, delimiter_text, part_number) -%}
  {%- set pattern = "concat('\\\\Q', " ~ delimiter_text ~ ", '\\\\E')" -%}
  {{- return("try_element_at(split(" ~ string_text ~ ", " ~ pattern ~ "), " ~ (part_number or 1) ~ ")") -}}
{%- endmacro -%}
