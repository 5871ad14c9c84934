{#-
  dbt.listagg with its order. With a limit the first values of that order are taken: they travel as hex in one ordered
  text, so that no value can be mistaken for the delimiter.
-#}
{%- macro tablestore__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- if not order_by_clause -%}
    {{- return(spark__listagg(measure, delimiter_text, none, limit_num)) -}}
  {%- endif -%}
  {%- if not limit_num -%}
    {{- return("listagg(cast(" ~ measure ~ " as string), " ~ delimiter_text ~ ") within group (" ~ order_by_clause ~ ")") -}}
  {%- endif -%}
  {%- set ordered = "listagg(hex(cast(" ~ measure ~ " as string)), ',') within group (" ~ order_by_clause ~ ")" -%}
  {{- return("array_join(transform(slice(split(" ~ ordered ~ ", ','), 1, " ~ limit_num
        ~ "), x -> cast(unhex(x) as string)), " ~ delimiter_text ~ ")") -}}
{%- endmacro -%}
