{{ config(unique_key='broker_id') }}
select
    employee_id as broker_id, manager_id, first_name, last_name, middle_initial, branch, office, phone,
    (select min(date_value) from {{ ref('dim_date') }}) as effective_date, date '9999-12-31' as end_date
from {{ source('raw', 'hr') }}
where job_code = 314
